# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Names of topics that nodes, launch files and offline commands share."""

# What filter_node publishes below its own name (std_msgs/Float64).
FIGURES = ('loss', 'cvar', 'violation', 'dual_variable', 'model_order', 'processing_time')

# What classifier_node publishes below its own name.
CLASSIFIER_FIGURES = (*FIGURES, 'margin')

# Where filter_node says which truths it takes to be corrupted (diagnostic_msgs/DiagnosticArray),
# and the keys of its values: that of a component of the truth goes on with its name.
REJECTED, LOSS, THRESHOLD, TRUTH = 'rejected', 'loss', 'threshold', 'truth: '

# Keys of the values of its label_scores (diagnostic_msgs/DiagnosticArray): a score's goes on with
# the label.
MARGIN, SCORE = 'margin', 'score: '
