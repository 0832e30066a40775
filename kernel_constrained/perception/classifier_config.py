# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of the classifier: the one source of its parameters."""

import math

import attrs

from kernel_constrained.configuration import ConfigurationError, group, parameter, same_as
from kernel_constrained.perception.config import (
    KernelLearnerConfig,
    MountingConfig,
    ScanFeatureConfig,
)
from kernel_constrained.perception.node_config import (
    DiagnosticsConfig,
    FilterNodeConfig,
    ModelConfig,
    NodeMountingConfig,
    PublishConfig,
    ScanInputConfig,
)

# What is said in place of a label where the margin is too small.
UNSURE = 'unsure'

# Characters of the longest label.
LONGEST_LABEL = 100

LEARNER = attrs.fields_dict(KernelLearnerConfig)


def wrong_label(label: str) -> str:
    """Say why a text cannot be a label; empty where it can."""
    if label == UNSURE:
        return f'{UNSURE} is what is said where no label is sure enough'
    if len(label) > LONGEST_LABEL:
        return f'{len(label)} characters, at most {LONGEST_LABEL} are taken'
    if not label.strip() or label != label.strip() or not label.isprintable():
        return f'{label!r} is not printable, empty, or has spaces around it'
    return ''


@attrs.frozen
class LabelConfig:
    """What a label holds for: the scans that come after it, until the next one."""

    hold: float = parameter(
        math.inf, 'how long a label holds, by the stamps of the scans after it; an empty label '
        'takes it back', unit='s', low=0.0, runtime=True,
    )  # fmt: skip


@attrs.frozen
class ClassifierLearnerConfig(KernelLearnerConfig):
    """The learner: multi-class hinge, 1 more than the best wrong score minus the right one."""

    tolerance: float = same_as(LEARNER['tolerance'], 2.0)
    dual_step_size: float = same_as(LEARNER['dual_step_size'], 0.1)


@attrs.frozen
class ClassifierConfig:
    """All that decides what the classifier says of a stream of scans and labels."""

    labels: tuple[str, ...] = parameter(
        (), 'the labels there are, others are refused; none to learn labels as they appear'
    )
    max_labels: int = parameter(
        30, 'labels that are learned at most, where none are given', low=2, high=1000
    )
    margin: float = parameter(
        1.0, 'lead of the best score below which the estimate is unsure; at 1 the hinge loss of '
        'the best label is 0', low=0.0, runtime=True,
    )  # fmt: skip
    features: ScanFeatureConfig = group(ScanFeatureConfig)
    mounting: MountingConfig = group(MountingConfig)
    label: LabelConfig = group(LabelConfig)
    learner: ClassifierLearnerConfig = group(ClassifierLearnerConfig)

    def __attrs_post_init__(self) -> None:
        """Refuse labels that are none, and fewer than two of them."""
        problems = [problem for label in self.labels if (problem := wrong_label(label))]
        if problems:
            raise ConfigurationError(f'labels cannot hold this: {"; ".join(problems)}')
        if len(self.labels) == 1 or len(set(self.labels)) < len(self.labels):
            raise ConfigurationError(
                'labels must be none or at least two different ones '
                f'(got {", ".join(self.labels)})'
            )


@attrs.frozen
class ClassifierNodeConfig(ClassifierConfig):
    """All that can be chosen of the classifier node."""

    autostart: bool = same_as(attrs.fields(FilterNodeConfig).autostart)
    executor: str = same_as(attrs.fields(FilterNodeConfig).executor)
    input: ScanInputConfig = group(ScanInputConfig)
    mounting: NodeMountingConfig = group(NodeMountingConfig)
    model: ModelConfig = group(ModelConfig)
    publish: PublishConfig = group(PublishConfig)
    diagnostics: DiagnosticsConfig = group(DiagnosticsConfig)
