# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers out of messages: covariances of poses, and positions."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernel_constrained.perception.messages import checked_frame, covariance_of, positions_of
from kernel_constrained.perception.unusable import Unusable


def with_covariance(values):
    return SimpleNamespace(pose=SimpleNamespace(covariance=values))


def stamped(x, y, z):
    position = SimpleNamespace(x=x, y=y, z=z)
    return SimpleNamespace(pose=SimpleNamespace(position=position))


def test_covariance_is_that_of_x_y_and_yaw():
    given = np.arange(36.0)
    covariance = covariance_of(with_covariance(given))
    assert covariance.tolist() == [[0.0, 1.0, 5.0], [6.0, 7.0, 11.0], [30.0, 31.0, 35.0]]


@pytest.mark.parametrize('variance', [0.0, -1.0])
def test_zeros_and_a_negative_variance_mean_that_it_is_not_known(variance):
    given = np.zeros(36)
    given[0] = variance
    given[14] = 3.0  # of z, which is not asked for
    assert covariance_of(with_covariance(given)) is None


def test_a_pose_without_covariance_has_none():
    assert covariance_of(stamped(1.0, 2.0, 3.0)) is None


@pytest.mark.parametrize('place', [0, 5, 35])
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_a_covariance_that_is_not_finite_is_refused(place, value):
    given = np.ones(36)
    given[place] = value
    with pytest.raises(Unusable, match='non-finite pose covariance'):
        covariance_of(with_covariance(given))


def test_positions_of_a_path_or_a_pose_in_two_or_three_dimensions():
    path = SimpleNamespace(poses=[stamped(1.0, 2.0, 3.0), stamped(4.0, 5.0, 6.0)])
    assert positions_of(path, 3).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert positions_of(path, 2).tolist() == [[1.0, 2.0], [4.0, 5.0]]
    assert positions_of(stamped(1.0, 2.0, 3.0), 2).tolist() == [[1.0, 2.0]]
    assert positions_of(SimpleNamespace(poses=[]), 2).shape == (0, 2)


def test_frame_is_the_one_given_or_else_that_of_before():
    message = SimpleNamespace(header=SimpleNamespace(frame_id='/map'))
    assert checked_frame(message, 'map', 'odom') == 'map'
    assert checked_frame(message, '', None) == checked_frame(message, '', 'map') == 'map'
    for given, before in [('odom', 'map'), ('', 'odom'), ('', '')]:
        with pytest.raises(Unusable, match=r"wrong frame .'map' where '(odom|)' is expected"):
            checked_frame(message, given, before)
