# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Run the experiments of the papers; print and write what it says beside what was measured."""

import argparse
import importlib
import sys
from pathlib import Path

from kernel_constrained.bags import RecordingError
from kernel_constrained.offline.output import make_folder, remove
from kernel_constrained.offline.reproduction.report import table_text

# Experiment: what it reproduces. Each is a module of `reproduction`.
EXPERIMENTS = {
    'lidar': 'kernel regression on the LIDAR table (Fig. 3)',
    'svm': 'multi-class kernel SVM (Figs. 1 and 2)',
    'rates': 'sub-optimality, violation and model order against samples',
    'subquantile': 'the second paper: convergence, error against samples, trim or bound',
}


def reproduce(name: str, output: Path) -> None:
    """Run one experiment: its figures and ``NAME.md`` are in ``output`` afterwards."""
    experiment = importlib.import_module(f'kernel_constrained.offline.reproduction.{name}')
    print(f'{name}: {EXPERIMENTS[name]}', flush=True)
    table = table_text(experiment.run(output))
    (output / f'{name}.md').write_text(f'# {EXPERIMENTS[name]}\n\n{table}')
    print(f'\n{table}')


def main(argv: list[str] | None = None) -> int:
    """Run the experiment that is named, or all of them."""
    listed = '\n'.join(f'  {name:<11} {text}' for name, text in EXPERIMENTS.items())
    parser = argparse.ArgumentParser(
        prog='python -m kernel_constrained reproduce',
        description=f'{__doc__}\n\nexperiments:\n{listed}\n  all         all of them',
        epilog='doc/reproduce_NAME.md says more of each.',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('experiment', choices=(*EXPERIMENTS, 'all'))
    parser.add_argument(
        '--output', type=Path, default=Path('out') / 'reproduce', metavar='DIR',
        help='where figures (PNG) and tables (markdown) go (default: %(default)s)',
    )  # fmt: skip
    arguments = parser.parse_args(argv)
    names = EXPERIMENTS if arguments.experiment == 'all' else (arguments.experiment,)
    try:
        remove(arguments.output / f'{name}.md' for name in names)
        make_folder(arguments.output)
    except RecordingError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    for name in names:
        reproduce(name, arguments.output)
    print(f'figures and tables: {arguments.output}')
    return 0
