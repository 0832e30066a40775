# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""The reference: Algorithm 1 and destructive KOMP written as in the paper, with no shortcut."""

import numpy as np

NUGGET = 1e-10


def komp(kernel, atoms, weights, budget):
    """Destructive KOMP that re-solves the least squares for every candidate (Eqs. 20 and 21).

    ``atoms`` (M, p), ``weights`` (M, functions); returns what is left of both.
    """
    gram = kernel(atoms, atoms) + NUGGET * np.eye(len(atoms))
    squared_norm = np.sum(weights * (gram @ weights))
    keep, fitted = list(range(len(atoms))), weights
    while keep:
        candidates = []
        for j in keep:
            rest = [i for i in keep if i != j]
            target = gram[rest] @ weights
            solution = np.linalg.solve(gram[np.ix_(rest, rest)], target)
            candidates.append((squared_norm - np.sum(target * solution), j, solution))
        error, j, solution = min(candidates, key=lambda candidate: candidate[0])
        if error > budget**2:
            break
        keep.remove(j)
        fitted = solution
    return atoms[keep], fitted


class NaiveLearner:
    """Algorithm 1 with gradient steps on the squared loss, by mini-batches.

    The paper's mode has the constraint of Eq. (23); the default mode is what ``doc/notes.md``
    says. ``constraints`` is a list.
    """

    def __init__(
        self, kernel, step_size, parsimony, regularization, mode='paper', constraints=(),
        dual_step_size=0.025, quantile_step_size=0.05, dual_regularization=1e-5,
        decay_after=np.inf, batch_size=1,
    ):  # fmt: skip
        self.kernel, self.eta, self.lam = kernel, step_size, regularization
        self.parsimony, self.mode, self.constraints = parsimony, mode, constraints
        self.eta_mu, self.eta_z, self.delta = (
            dual_step_size, quantile_step_size, dual_regularization,
        )  # fmt: skip
        self.decay_after, self.batch_size, self.batch = decay_after, batch_size, []
        self.atoms, self.weights, self.targets = None, None, []
        count = len(constraints)
        self.mu, self.mean_mu, self.power = np.zeros(count), np.zeros(count), np.zeros(count)
        self.z = np.array([c.tolerance if c.significance > 0 else 0.0 for c in constraints])
        self.t = 0

    def functions(self, x):
        return self.kernel(np.atleast_2d(x), self.atoms) @ self.weights

    def predict(self, X):
        outputs = self.weights.shape[1] // (2 if self.mode == 'default' else 1)
        return self.functions(X)[:, -outputs:]

    def step(self, x, y):
        y = np.atleast_1d(y)
        if self.atoms is None:
            columns = 2 * len(y) if self.mode == 'default' else len(y)
            self.atoms, self.weights = np.empty((0, len(x))), np.empty((0, columns))
        self.targets.append(y)
        self.batch.append((x, y))
        if len(self.batch) == self.batch_size:
            self.learn(*map(np.array, zip(*self.batch, strict=True)))
            self.batch = []
        self.t += 1

    def learn(self, x, y):
        f = self.functions(x)
        update = self.default_update if self.mode == 'default' else self.paper_update
        newcomers, budget = update(x, y, f)
        spent = 0.0
        for point, coefficient in zip(x, newcomers, strict=True):
            self.atoms = np.vstack([self.atoms, point])
            self.weights = np.vstack([self.weights, coefficient])
            spent = self.project_newcomer(spent, budget)
        left = np.sqrt(max(budget**2 - spent, 0.0))
        self.atoms, self.weights = komp(self.kernel, self.atoms, self.weights, left)

    def project_newcomer(self, spent, budget):
        """Remove the atom just added if it is the cheapest of all and fits the budget."""
        gram = self.kernel(self.atoms, self.atoms) + NUGGET * np.eye(len(self.atoms))
        costs = np.sum(self.weights**2, axis=1) / np.diag(np.linalg.inv(gram))
        if costs[-1] > costs.min() or spent + costs[-1] > budget**2:
            return spent
        target = gram[:-1] @ self.weights
        self.weights = np.linalg.solve(gram[:-1, :-1], target)
        self.atoms = self.atoms[:-1]
        return spent + costs[-1]

    def paper_update(self, x, y, f):
        residual = f - y
        losses, multipliers = np.sum(residual**2, axis=1), np.ones(len(x))
        for j, c in enumerate(self.constraints):
            order, left, g = np.argsort(-losses), 1.0, -c.tolerance
            for b in order:
                share = min(1 / (len(x) * (1 - c.significance)), left)
                left -= share
                g += share * losses[b]
                multipliers[b] += self.mu[j] * share * len(x)
            g += c.collapsed_offset if len(x) == 1 else 0.0
            self.mu[j] = max((1 - self.eta**2 * self.delta) * self.mu[j] + self.eta * g, 0.0)
        self.weights = (1 - self.eta * self.lam) * self.weights
        newcomers = -2 * self.eta / len(x) * multipliers[:, None] * residual
        return newcomers, self.parsimony * self.eta**2

    def default_update(self, x, y, f):
        q, size = y.shape[1], len(x)
        decay = 1 / np.sqrt(1 + self.t / self.decay_after)
        losses = np.sum((f[:, q:] - y) ** 2, axis=1)
        tails = losses[:, None] > self.z
        multipliers = (1 + tails @ self.mu) / (1 + np.sum(self.mu))
        kappa = np.array([self.kernel(a[None], a[None])[0, 0] for a in x])
        shares = np.minimum(2 * self.eta * decay * multipliers * kappa, 1.0)
        iterate = -shares[:, None] * (f[:, :q] - y) / kappa[:, None] / size
        shrink = 1 - self.eta * decay / (1 + np.sum(self.mu)) * self.lam

        weight = 2 / (self.t / size + 2)
        for j, c in enumerate(self.constraints):
            self.dual_update(j, c, losses, decay, weight)
        old, mean = shrink * self.weights[:, :q], self.weights[:, q:]
        self.weights = np.hstack([old, mean + weight * (old - mean)])
        scale = np.sqrt(np.mean(np.sum(np.square(self.targets), axis=1)))
        budget = self.parsimony * (self.eta * decay) ** 2 * scale
        return np.hstack([iterate, weight * iterate]), budget

    def dual_update(self, j, c, losses, decay, weight):
        tail, z = 1 - c.significance, self.z[j]
        h = np.mean(tail * (z - c.tolerance) + np.maximum(losses - z, 0.0))
        self.power[j] += weight * (h**2 - self.power[j])
        step = self.eta_mu * decay / len(self.constraints)
        ascent = step * h / np.sqrt(self.power[j] + 1e-300)
        self.mu[j] = max((1 - step**2 * self.delta) * self.mu[j] + ascent, 0.0)
        self.mean_mu[j] += weight * (self.mu[j] - self.mean_mu[j])
        slope = tail - np.mean(losses > z)
        self.z[j] = max(z - self.eta_z * decay * c.tolerance * slope, 0.0)


class NaiveRecursive:
    """Recursive least squares as textbooks have it: mean and covariance of the weights.

    In weights, not in orthonormal coordinates: a prior ``K^-1 / information`` for the component
    that a new atom adds, and conditioning on a weight being zero when an atom goes.
    """

    def __init__(self, kernel, novelty, regularization, window=np.inf, max_order=10**9):
        self.kernel, self.novelty, self.lam = kernel, novelty, regularization
        self.window, self.remember, self.max_order = window, 1 - 1 / window, max_order
        self.atoms, self.mean, self.cov = None, None, None
        self.information, self.t, self.turn, self.usage = 0.0, 0, 0, np.zeros(0)

    def predict(self, X):
        return self.kernel(X, self.atoms) @ self.mean

    def inverse_gram(self):
        gram = self.kernel(self.atoms, self.atoms)
        return np.linalg.inv(gram + NUGGET * np.eye(len(gram)))

    def observe(self, row, target, noise, remember):
        gain = self.cov @ row
        variance = noise + row @ gain
        self.mean = self.mean + np.outer(gain / variance, target - row @ self.mean)
        self.cov = (self.cov - np.outer(gain, gain) / variance) / remember

    def step(self, x, y):
        if self.atoms is None:
            self.atoms, self.mean = np.empty((0, len(x))), np.empty((0, len(y)))
            self.cov = np.empty((0, 0))
        self.information = self.remember * self.information + 1
        k, inverse = self.kernel(x[None], self.atoms)[0], self.inverse_gram()
        norm = self.kernel(x[None], x[None])[0, 0] * (1 + NUGGET)
        projection = inverse @ k
        gap, needed = norm - k @ projection, self.novelty * norm
        if len(self.atoms) >= self.max_order:
            needed = max(needed, (self.usage / np.diag(inverse)).min())
        self.usage = self.remember * self.usage + k**2
        if gap > needed:
            self.admit(x, projection, gap)
        row = self.kernel(x[None], self.atoms)[0]
        row[-1] += norm - 1 if gap > needed else 0.0  # the nugget of the atom itself
        self.observe(row, y, 1.0, self.remember)
        interval = min(8, 3 * self.window / len(self.atoms))
        for _ in range(int((self.t + 1) // interval - self.t // interval)):
            self.renew(interval)
        while len(self.atoms) > self.max_order:
            self.remove(int(np.argmin((self.usage / np.diag(self.inverse_gram()))[:-1])))
        self.t += 1

    def admit(self, x, projection, gap):
        """Add the function ``(k(x, .) - projection) / sqrt(gap)``, of variance 1 / information."""
        direction = np.append(-projection, 1.0) / np.sqrt(gap)
        self.atoms, self.usage = np.vstack([self.atoms, x]), np.append(self.usage, 0.0)
        self.mean = np.vstack([self.mean, np.zeros(self.mean.shape[1])])
        cov = np.zeros((len(self.atoms),) * 2)
        cov[:-1, :-1] = self.cov
        self.cov = cov + np.outer(direction, direction) / (0.5 * self.lam * self.information)

    def renew(self, interval):
        """Observe an orthonormal function to be zero: the next one of Gram and Schmidt's."""
        j = self.turn % len(self.atoms)
        self.turn = j + 1
        gram = self.kernel(self.atoms, self.atoms) + NUGGET * np.eye(len(self.atoms))
        row = np.linalg.cholesky(gram)[:, j]
        noise = 2 / (self.lam * interval * len(self.atoms))
        self.observe(row, np.zeros(self.mean.shape[1]), noise, 1.0)

    def remove(self, j):
        keep = [i for i in range(len(self.atoms)) if i != j]
        ratio = self.cov[keep, j] / self.cov[j, j]
        self.mean = self.mean[keep] - np.outer(ratio, self.mean[j])
        self.cov = self.cov[np.ix_(keep, keep)] - np.outer(ratio, self.cov[j, keep])
        self.atoms, self.usage = self.atoms[keep], self.usage[keep]
