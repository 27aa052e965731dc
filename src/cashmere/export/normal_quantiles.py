"""Quantiles of the normal distribution, which ONNX lacks."""

from __future__ import annotations

from cashmere.export.graph import Graph, Value

_CENTRE = (
    (
        *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4),
        *(4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    ),
    (
        *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
        *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
    ),
)
_TAIL = (
    (
        *(1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0),
        *(1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    ),
    (
        *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
        *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4),
        1.05075007164441684324e-9,
    ),
)
"""Coefficients of numerators and denominators, lowest power first."""


def normal_quantile(graph: Graph, shares: Value, *, least: float) -> Value:
    """Return the quantiles of the standard normal distribution for the given probabilities.

    Parameters
    ----------
    graph : Graph
        Gets the nodes.
    shares : Value
        Probabilities, float64.
    least : float
        Probabilities are clipped to this and one minus this; at least 1e-10.

    References
    ----------
    Wichura (1988), Algorithm AS 241: The percentage points of the normal distribution, Applied Statistics 37(3),
    algorithm PPND16: about 16 digits. Its third region begins at a probability of 1.4e-11.
    """
    inside = shares.at_least(least).at_most(1 - least)
    q = inside - 0.5
    centre = q * (_polynomial(0.180625 - q * q, _CENTRE[0]) / _polynomial(0.180625 - q * q, _CENTRE[1]))
    r = graph.node("Sqrt", -graph.node("Log", inside.at_most(1.0 - inside))) - 1.6
    size = _polynomial(r, _TAIL[0]) / _polynomial(r, _TAIL[1])
    tail = graph.where(q < 0.0, -size, size)
    return graph.where(graph.node("Abs", q) > 0.425, tail, centre)


def _polynomial(x: Value, coefficients: tuple[float, ...]) -> Value:
    """Return a polynomial by Horner's rule."""
    value = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value = (value + coefficient) * x
    return value + coefficients[0]
