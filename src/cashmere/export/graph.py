"""An ONNX graph under construction: values, and the nodes that compute them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from cashmere.base.arrays import AnyArray

ML = "ai.onnx.ml"
"""Domain of the operators for trees and labels."""

_OPSETS = {"": 17, ML: 3}
"""Versions of the operators, old enough for runtimes of 2022."""

_IR_VERSION = 8

_BOOLEANS = frozenset(("Equal", "Greater", "GreaterOrEqual", "IsNaN", "Less"))
_WHOLE_NUMBERS = frozenset(("ArgMax", "Shape"))
"""Operators whose result does not have the type of their first input."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An input, a constant, or the result of a node; arithmetic with it adds nodes.

    In arithmetic, arrays and numbers become constants of its type.

    Attributes
    ----------
    graph : Graph
        Graph that it belongs to.
    name : str
        Its name in the graph.
    dtype : numpy.dtype
        Type of its elements; object for texts.
    """

    graph: Graph = field(repr=False)
    name: str
    dtype: np.dtype[Any]

    __array_ufunc__ = None  # so that arrays leave arithmetic to the value

    def __add__(self, other: Operand) -> Value:
        return self.graph.node("Add", self, self._like(other))

    def __sub__(self, other: Operand) -> Value:
        return self.graph.node("Sub", self, self._like(other))

    def __rsub__(self, other: Operand) -> Value:
        return self.graph.node("Sub", self._like(other), self)

    def __mul__(self, other: Operand) -> Value:
        return self.graph.node("Mul", self, self._like(other))

    def __truediv__(self, other: Operand) -> Value:
        return self.graph.node("Div", self, self._like(other))

    def __matmul__(self, other: Operand) -> Value:
        return self.graph.node("MatMul", self, self._like(other))

    def __neg__(self) -> Value:
        return self.graph.node("Neg", self)

    def __gt__(self, other: AnyArray | float) -> Value:  # type: ignore[misc]  # arrays compare with anything
        return self.graph.node("Greater", self, self._like(other))

    def __ge__(self, other: Operand) -> Value:
        return self.graph.node("GreaterOrEqual", self, self._like(other))

    def __lt__(self, other: AnyArray | float) -> Value:  # type: ignore[misc]  # arrays compare with anything
        return self.graph.node("Less", self, self._like(other))

    def cast(self, dtype: Any) -> Value:
        """Return the value in another type."""
        return self if self.dtype == np.dtype(dtype) else self.graph.node("Cast", self, to=np.dtype(dtype))

    def columns(self, numbers: AnyArray) -> Value:
        """Return some columns of a matrix."""
        return self.graph.node("Gather", self, np.asarray(numbers, dtype=np.int64), axis=1)

    def at_least(self, least: Operand) -> Value:
        """Return the larger of the value and a bound."""
        return self.graph.node("Max", self, self._like(least))

    def at_most(self, most: Operand) -> Value:
        """Return the smaller of the value and a bound."""
        return self.graph.node("Min", self, self._like(most))

    def is_missing(self) -> Value:
        """Return where the value is NaN."""
        return self.graph.node("IsNaN", self)

    def _like(self, other: Operand) -> Operand:
        return other if isinstance(other, Value) else np.asarray(other, dtype=self.dtype)


Operand = Value | AnyArray | float
"""An input of a node; anything but a `Value` becomes a constant."""


class Graph:
    """Collects nodes; arrays among their inputs become constants, equal ones a single constant."""

    def __init__(self) -> None:
        self._inputs: dict[str, Any] = {}
        self._outputs: list[Any] = []
        self._nodes: list[NodeProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        self._tensors: list[TensorProto] = []
        self._count = 0

    def input(self, name: str, dtype: np.dtype[Any]) -> Value:
        """Declare an input column, ``(n_rows, 1)``."""
        self._inputs[name] = helper.make_tensor_value_info(name, _onnx_type(dtype), ["rows", 1])
        return Value(self, name, dtype)

    def output(self, name: str, value: Value, n_columns: int | None = None) -> None:
        """Declare an output, ``(n_rows, n_columns)`` or ``(n_rows,)``."""
        self._nodes.append(helper.make_node("Identity", [value.name], [name]))
        shape: list[str | int | None] = ["rows"] if n_columns is None else ["rows", n_columns]
        self._outputs.append(helper.make_tensor_value_info(name, _onnx_type(value.dtype), shape))

    def free_name(self, name: str) -> str:
        """Return a name for an output that no column has."""
        while name in self._inputs:
            name += "_"
        return name

    def node(self, operator: str, *operands: Operand, **attributes: Any) -> Value:
        """Add a node with one result.

        Parameters
        ----------
        operator : str
            A standard operator of ONNX.
        *operands : Value or array
            Its inputs.
        **attributes
            Its attributes.
        """
        values = [self.constant(each) for each in operands]
        dtype = values[operator == "Where"].dtype
        if operator == "Cast":
            dtype = attributes["to"]
            attributes = {"to": _onnx_type(dtype)}
        elif operator in _BOOLEANS:
            dtype = np.dtype(bool)
        elif operator in _WHOLE_NUMBERS:
            dtype = np.dtype(np.int64)
        return self._add(operator, values, dtype, attributes)

    def where(self, condition: Operand, chosen: Operand, other: Value) -> Value:
        """Return elements of `chosen` where a condition holds, and of `other` elsewhere."""
        return self.node("Where", condition, other._like(chosen), other)

    def side_by_side(self, *parts: Value) -> Value:
        """Return matrices joined by columns."""
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)

    def sum_over(self, value: Value, axis: int, *, keep: bool) -> Value:
        """Return the sums along an axis, which is kept with length 1 if `keep` is true."""
        return self.node("ReduceSum", value, np.array([axis]), keepdims=int(keep))

    def rows_of(self, row: AnyArray, like: Value) -> Value:
        """Repeat a row to the number of rows of another matrix."""
        n_rows = self.node("Gather", self.node("Shape", like), np.array([0]))
        return self.node("Expand", row[None], self.node("Concat", n_rows, np.array([len(row)]), axis=0))

    def codes(self, texts: Value, levels: tuple[str, ...]) -> Value:
        """Return the position of each text among the levels, or the number of levels if it is not among them."""
        keys = {"keys_strings": list(levels), "values_int64s": list(range(len(levels))), "default_int64": len(levels)}
        return self._add("LabelEncoder", [texts], np.dtype(np.int64), keys, domain=ML)

    def trees(self, matrix: Value, attributes: Mapping[str, Any]) -> Value:
        """Return the sums of trees, see `cashmere.export.trees`."""
        return self._add("TreeEnsembleRegressor", [matrix], np.dtype(np.float32), attributes, domain=ML)

    def constant(self, operand: Operand) -> Value:
        """Return an operand as a constant, reusing an equal one; return a `Value` as it is."""
        if isinstance(operand, Value):
            return operand
        array = np.asarray(operand)
        content = repr(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes()
        key = (array.dtype.str, array.shape, content)
        if key not in self._constants:
            name = self._new_name()
            self._tensors.append(numpy_helper.from_array(array, name))
            self._constants[key] = Value(self, name, array.dtype)
        return self._constants[key]

    def to_model(self, facts: Mapping[str, str]) -> ModelProto:
        """Return the finished model.

        Parameters
        ----------
        facts : mapping of str to str
            Facts to store beside the graph.
        """
        graph = GraphProto(name="cashmere")
        graph.input.extend(self._inputs.values())
        graph.output.extend(self._outputs)
        graph.node.extend(self._nodes)
        graph.initializer.extend(self._tensors)
        opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="cashmere")
        helper.set_model_props(model, dict(facts))
        return model

    def _add(
        self, operator: str, inputs: list[Value], dtype: np.dtype[Any], attributes: Mapping[str, Any], domain: str = ""
    ) -> Value:
        name = self._new_name()
        node = helper.make_node(operator, [each.name for each in inputs], [name], domain=domain)
        node.attribute.extend(_attribute(key, given) for key, given in attributes.items())
        self._nodes.append(node)
        return Value(self, name, dtype)

    def _new_name(self) -> str:
        self._count += 1
        name = f"cashmere.{self._count}"
        return self._new_name() if name in self._inputs else name


def _attribute(name: str, given: Any) -> AttributeProto:
    if isinstance(given, np.ndarray):
        given = numpy_helper.from_array(given, name)
    return helper.make_attribute(name, given)


def _onnx_type(dtype: np.dtype[Any]) -> int:
    return int(TensorProto.STRING if dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(dtype))
