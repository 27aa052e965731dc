"""The benchmarks behind one command: ``python -m benchmarks record | replay | latent | tau | tpe | run | ...``."""

from __future__ import annotations

import argparse
import os
from types import ModuleType

# One thread per process, before numpy is loaded: replays and recordings run one process per core.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def main() -> None:
    from benchmarks.experiments import (
        ablation,
        absolute_errors,
        all_rows,
        categories,
        contributions,
        coverage,
        defaults,
        deviances,
        emulator_study,
        features,
        fold_racing,
        label_metrics,
        last_step,
        learners,
        logarithms,
        loss_tau,
        many_levels,
        networks,
        newest_fold,
        outliers,
        patience,
        positions,
        quantisation,
        rare_classes,
        real_runs,
        spare_time,
        swaps,
        temperatures,
        texts,
    )
    from benchmarks.experiments import tpe as tpe_study
    from benchmarks.experiments.costs import calibration as cost_study
    from benchmarks.experiments.costs import equal_seconds, first_seconds, suggested
    from benchmarks.experiments.costs import timed_study as timed_cost_study
    from benchmarks.experiments.dacopt import study as dacopt
    from benchmarks.experiments.divbo import printed_tests, surrogate_curve, surrogate_tau
    from benchmarks.experiments.divbo import study as ensemble_suites
    from benchmarks.experiments.latent import left_out
    from benchmarks.experiments.latent import overlap as latent_overlap
    from benchmarks.experiments.latent import study as latent_study
    from benchmarks.experiments.opening import study as opening_study
    from benchmarks.faults import study as fault_study
    from benchmarks.pages import write as pages
    from benchmarks.peers import study as peer_study
    from benchmarks.recordings import record, replay_study
    from benchmarks.tables import large as large_tables
    from benchmarks.tables import openml as openml_tables
    from benchmarks.timings import coordinator, onnx_certificates
    from cashmere.exceptions import CashmereError

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    modules = {
        "record": record,
        "replay": replay_study,
        "latent": latent_study,
        "overlap": latent_overlap,
        "left-out": left_out,
        "tau": surrogate_tau,
        "loss-tau": loss_tau,
        "curve": surrogate_curve,
        "printed": printed_tests,
        "tpe": tpe_study,
        "costs": cost_study,
        "first-seconds": first_seconds,
        "suggested-costs": suggested,
        "costs-replay": timed_cost_study,
        "equal-seconds": equal_seconds,
        "run": real_runs,
        "fold-racing": fold_racing,
        "ablation": ablation,
        "coverage": coverage,
        "newest-fold": newest_fold,
        "outliers": outliers,
        "contributions": contributions,
        "swaps": swaps,
        "texts": texts,
        "defaults": defaults,
        "absolute-errors": absolute_errors,
        "deviances": deviances,
        "logarithms": logarithms,
        "many-levels": many_levels,
        "emulator": emulator_study,
        "patience": patience,
        "positions": positions,
        "features": features,
        "quantisation": quantisation,
        "rare-classes": rare_classes,
        "temperatures": temperatures,
        "label-metrics": label_metrics,
        "last-step": last_step,
        "spare-time": spare_time,
        "all-rows": all_rows,
        "learners": learners,
        "categories": categories,
        "networks": networks,
        "opening": opening_study,
        "pages": pages,
        "peers": peer_study,
        "fetch": openml_tables,
        "large": large_tables,
        "faults": fault_study,
        "coordinator": coordinator,
        "onnx": onnx_certificates,
    }
    for name, module in modules.items():
        command = commands.add_parser(
            name,
            help=_first_line(module),
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(main=module.main)
    experiments = {
        "dacopt1": (dacopt, dacopt.add_arguments_1, dacopt.main_1),
        "dacopt2": (dacopt, dacopt.add_arguments_2, dacopt.main_2),
        "divbo": (ensemble_suites, ensemble_suites.add_arguments, ensemble_suites.main_divbo),
        "optdivbo": (ensemble_suites, ensemble_suites.add_arguments, ensemble_suites.main_optdivbo),
    }
    for name, (module, add_arguments, start) in experiments.items():
        command = commands.add_parser(
            name,
            help=_first_line(module),
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_arguments(command)
        command.set_defaults(main=start)
    arguments = parser.parse_args()
    try:
        arguments.main(arguments)
    except CashmereError as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from error


def _first_line(module: ModuleType) -> str:
    return (module.__doc__ or "").partition("\n")[0].replace("%", "%%")


if __name__ == "__main__":
    main()
