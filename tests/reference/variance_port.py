#!/usr/bin/env python3
"""The variance bound once more, in NumPy, straight from the formulas of docs/bound.md.

    variance_port.py PROGRAM

PROGRAM (variance_dump) writes cases with the deviations that the library computes; every one is
computed here again, token by token, and must agree. Shares no code and no layout with the library.
Exit status 1 when one differs, and when there were no cases.
"""

import json
import subprocess
import sys

import numpy as np

KAPPA = 0.4248
TOLERANCE = 1e-6  # of sigma: sums in another order
# The library puts an upper limit in the place of terms that cannot matter, each at most 1% of a
# variance; which are there beside 16-bit operands, and errors of the state in all classes.
ROOM = 0.01


def read_cases(data):
    """Each case: a line of JSON, then its arrays as little-endian f64."""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        case = json.loads(data[at:end])
        at = end + 1
        arrays = {}
        for name, shape in case["arrays"]:
            count = int(np.prod(shape))
            arrays[name] = np.frombuffer(data, "<f8", count, at).reshape(shape)
            at += 8 * count
        yield case, arrays


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def activate(case, x, n, hv):
    """q, k, v, g, beta and the error of g in units of u, for one head of one sequence."""
    b, begin, end = case["sequences"][n]
    h = hv // (x["v"].shape[2] // x["q"].shape[2])
    q, k = x["q"][b, begin:end, h].copy(), x["k"][b, begin:end, h].copy()
    v, raw, beta = x["v"][b, begin:end, hv], x["g"][b, begin:end, hv], x["beta"][b, begin:end, hv]
    if case["l2norm"]:
        q /= np.sqrt((q * q).sum(1, keepdims=True) + 1e-6)
        k /= np.sqrt((k * k).sum(1, keepdims=True) + 1e-6)
    if case["beta"] != "ready":
        beta = sigmoid(beta) * (2 if case["beta"] == "doubled" else 1)
    if case["gate"] == "log_decay":
        g = raw
        gamma = np.minimum(np.abs(g), np.where(np.isinf(g), 1000, np.inf))
    else:
        A_log = x["A_log"].reshape(-1)[hv] if "A_log" in x else 0.0
        bias = x["dt_bias"].reshape(-1, q.shape[1])[hv] if "dt_bias" in x else np.zeros(q.shape[1])
        y, terms = raw + bias, np.abs(raw) + np.abs(bias)
        if case["gate"] == "softplus":
            g = -np.exp(A_log) * np.logaddexp(0, y)
            gamma = np.abs(g) * (4 + abs(A_log)) + np.exp(A_log) * sigmoid(y) * terms
        else:
            lb = case["lower_bound"]
            g = lb * sigmoid(np.exp(A_log) * y)
            gamma = np.abs(g) * (4 + (1 - g / lb) * np.exp(A_log) * terms * (3 + abs(A_log)))
    gamma = gamma.copy()
    repeated = np.zeros(g.shape, bool)
    repeated[1:] = g[1:] == g[:-1]
    one_sided = case["formats"]["gate"][0] > case["formats"]["accumulation"][0]
    u = case["formats"]["gate"][0]
    with np.errstate(all="ignore"):
        lost = np.where(g / u == np.rint(g / u), np.minimum(1, g * g / u), 0)
    gamma += np.where(repeated | one_sided, 1, lost) * ((g > -40) & (g != 0))
    return q, k, v, g, beta, gamma


def nearness(x, value, unit):
    """How much of x rounds like value."""
    return np.clip(2 * (1 - np.abs(x - value) / (unit * value)), 0, 1)


class Echo:
    """A number that T repeats along diagonal d, and for every block size Z, the error of the state
    that its rounding has made."""

    def __init__(self, d, value, sizes, shape):
        self.d, self.value = d, value
        self.Z = np.zeros((sizes, *shape))
        self.share, self.weight = None, 0.0  # of the block: how much of every entry, squared sum


def is_repetitive(T, unit):
    for d in range(1, 5):
        x = np.abs(np.diagonal(T, -d))
        for distance in range(1, 5):
            now, then = x[distance:], x[:-distance]
            both = (now > 0) & (then > 0)
            equal = np.sum(both & (np.abs(now - then) <= unit * now * 0.3))
            if equal >= 4 and 2 * equal >= np.sum(both):
                return True
    return False


def find_echoes(T, unit, known, sizes, shape):
    """Echoes of a block, `known` ones and new ones, and the factor for those left out."""
    n, total, new = len(T), 0.0, []
    left = [(np.abs(np.diagonal(T, -d)) > 0).astype(float) for d in range(n)]
    for echo in known:
        if echo.d >= n:
            echo.share, echo.weight = np.zeros(0), 0.0
            continue
        x = np.abs(np.diagonal(T, -echo.d))
        echo.share = np.minimum(nearness(x, echo.value, unit), left[echo.d])
        left[echo.d] = left[echo.d] - echo.share
        echo.weight = np.sum(echo.share * x) ** 2
        total += echo.weight
    kept = total
    for d in range(n if is_repetitive(T, unit) else 0):
        x, found = np.abs(np.diagonal(T, -d)), 0
        for first in range(len(x)):
            if left[d][first] < 0.6 or found == 4:
                continue
            close = nearness(x, x[first], unit) * (left[d] > 0)
            echo = Echo(d, np.sum(close * x) / np.sum(close), sizes, shape)
            echo.share = np.minimum(nearness(x, echo.value, unit), left[d])
            left[d] = left[d] - echo.share
            if np.sum(echo.share) >= 3.5:
                echo.weight = np.sum(echo.share * x) ** 2
                total += echo.weight
                new.append(echo)
                found += 1
    echoes = list(known)
    for echo in sorted(new, key=lambda e: -e.weight)[:16]:
        if kept >= 0.98 * total:
            break
        echoes.append(echo)
        kept += echo.weight
    left = [1.0] * n
    for echo in echoes:  # where numbers lie near each other, the heavier one comes first
        if echo.d < n:
            echo.share = np.minimum(nearness(np.abs(np.diagonal(T, -echo.d)), echo.value, unit), left[echo.d])
            left[echo.d] = left[echo.d] - echo.share
    return echoes, np.sqrt(total / kept) if kept > 0 else 1.0


def alike_roundings(g, u):
    """Of prefix sums: what equal or lost log decays add up to on the grid of a large sum, over u."""
    size = np.where(np.isinf(g), 1000, np.abs(g))
    total = np.cumsum(size, 0)
    before = np.vstack([np.zeros_like(size[:1]), size[:-1]])
    alike = (np.abs(size - before) <= 1.9 * u * total) & (0 < size) & (140 * size < total)
    return np.cumsum(np.where(alike, np.minimum(total, size / u), 0), 0)


class Head:
    """Carries S, P, Gamma and echoes over the blocks of one head."""

    def __init__(self, case, S, rounding):
        self.case, self.f, self.S = case, rounding, S
        self.P, self.Gamma = np.zeros_like(S), np.zeros_like(S)
        self.echoes, self.echoed = [], False
        block = rounding["block"]
        stated = case["formats"]["block"] > 0 or rounding["per_token"]
        self.parts = [block >> i for i in range(1 if stated or block < 32 else 2 if block < 64 else 3)]

    def echo_squares(self):
        """Of the block size that has most of them."""
        if not self.echoes:
            return np.zeros_like(self.P)
        return sum(echo.Z**2 for echo in self.echoes).max(0)

    def sigma_state(self):
        return np.sqrt(self.P + self.Gamma**2 + self.echo_squares())

    def echo(self, T, A, Q, U, kE, qE, E_n, W, R):
        """One block: the variance of o by echoes and the errors of the state after it."""
        n, u = len(T), self.f["triangle"][0]
        self.echoes, gain = find_echoes(T, u, self.echoes, len(self.parts), self.P.shape)
        variances, states = np.zeros((len(self.parts), n, R.shape[1])), []
        for echo in self.echoes:
            # Row j of T with nothing but the number that echoes, as it is rounded.
            e = np.zeros((n, n))
            for j in range(echo.d, n if echo.weight > 0 else 0):
                e[j, j - echo.d] = KAPPA * u * gain * echo.share[j - echo.d] * T[j, j - echo.d]
            after = np.zeros_like(echo.Z)
            for i, part in enumerate(self.parts):
                y = np.zeros_like(R)  # error of U, part after part as an implementation solves
                for first in range(0, n, part):
                    at = slice(first, min(first + part, n))
                    own = R[at] - A[at, :first] @ U[:first]
                    y[at] = e[at, at] @ own - T[at, at] @ (A[at, :first] @ y[:first])
                y -= T @ (kE @ echo.Z[i])
                variances[i] += (qE @ echo.Z[i] + Q @ y) ** 2
                after[i] = E_n[:, None] * echo.Z[i] + W.T @ y
            states.append(after)
        self.echoed = self.echoed or len(self.echoes) > 0
        return variances.max(0), states

    def repeated_scores(self, Q, U):
        """Rows of Q that hold nearly one number: (Q . U)^2 over the entries that round alike."""
        n, u = len(Q), self.f["operands"][0]
        out = np.zeros_like(U)
        for i in range(n if u > 0 else 0):
            x = np.abs(Q[i, : i + 1])
            left = (x > 0).astype(float)
            for _ in range(4):
                whole = np.flatnonzero(left >= 0.6)
                if len(whole) == 0:
                    break
                last = whole[-1]
                share = np.where(np.arange(i + 1) <= last, np.minimum(nearness(x, x[last], u), left), 0)
                left = left - share
                if np.sum(share) >= 3.5:
                    out[i] += ((share * Q[i, : i + 1]) @ U[: i + 1]) ** 2
        return out

    def keep_echoes(self, states):
        """Those that have vanished, and the lightest of too many, go to P."""
        for echo, Z in zip(self.echoes, states):
            echo.Z = Z
        most = lambda echo: self.P.shape[0] * (echo.Z**2).max(0)
        for echo in list(reversed(self.echoes)):
            if echo.weight == 0 and np.all(most(echo) <= 0.01 * self.P):
                self.P = self.P + most(echo)
                self.echoes.remove(echo)
        while len(self.echoes) > 16:
            echo = min(self.echoes, key=lambda e: e.weight)
            self.P = self.P + most(echo)
            self.echoes.remove(echo)

    def block(self, q, k, v, g, beta, gamma):
        """One block of tokens; returns sigma of its outputs."""
        f, S0, P0, G0 = self.f, self.S, self.P, self.Gamma
        n, K = k.shape
        V = v.shape[1]
        rho = {name: (KAPPA * f[name][0]) ** 2 for name in f["names"]}
        op, tri, slv, acc = rho["operands"], rho["triangle"], rho["solve"], rho["accumulation"]
        u = f["gate"][0]
        na = (16 + K / 2) * acc
        eta2 = f["operands"][1] ** 2 / 3
        tiny = f["accumulation"][1] ** 2
        rounded = f["state"][0] > f["accumulation"][0]
        every_token = f["per_token"]

        D = np.cumsum(gamma, 0)
        prefix = KAPPA**2 * np.cumsum(D**2, 0) * f["prefix_sums"]
        D = D + alike_roundings(g, u) * f["prefix_sums"]
        phi = D + np.sqrt(prefix)

        # The token recurrence, with W: every earlier key, decayed to the present token.
        A, a2, ag, Q, q2, qg, T = (np.zeros((n, n)) for _ in range(7))
        W, E, U, R, o = np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, V)), np.zeros((n, V)), np.zeros((n, V))
        S, run, cef = S0.copy(), np.ones(K), np.zeros(K)
        for i in range(n):
            decay = np.exp(g[i])
            run = run * decay
            E[i] = run
            W[:i] *= decay
            A[i, :i], a2[i, :i] = W[:i] @ k[i], (W[:i] * k[i]) ** 2 @ np.ones(K)
            between = (D[i] - D[:i]) ** 2 + prefix[i] - prefix[:i]  # error of G_i - G_j, squared
            ag[i, :i] = ((W[:i] * k[i]) ** 2 * between).sum(1)
            qg[i, :i] = ((W[:i] * q[i]) ** 2 * between).sum(1)
            W[i] = k[i]
            Q[i, : i + 1], q2[i, : i + 1] = W[: i + 1] @ q[i], (W[: i + 1] * q[i]) ** 2 @ np.ones(K)
            S = decay[:, None] * S
            w = v[i] - k[i] @ S
            U[i] = beta[i] * w
            S = S + np.outer(k[i], U[i])
            o[i] = self.case["scale"] * (q[i] @ S)
            R[i] = w + A[i, :i] @ U[:i]
            T[i, i] = beta[i]
            for j in range(i):
                T[i, j] = -beta[i] * (A[i, j:i] @ T[j:i, j])
            cef = cef * np.exp(2 * g[i]) + 1
        kE, qE = k * E, q * E
        TK = T @ kE
        doubt = P0 + G0**2 + self.echo_squares()
        S2, R2, U2 = S0**2 + doubt, R**2, U**2 + TK**2 @ doubt  # second moments
        km = np.maximum.accumulate((k * k).sum(1))[:, None]
        qn = (q * q).sum(1)[:, None]
        s0 = S2.sum(0)[None, :]
        cU = np.cumsum(U**2, 0)

        mu = np.ones(n)
        for i in range(n):
            J = [j for j in range(n)
                 if np.array_equal(k[j], k[i]) and beta[j] == beta[i] and np.array_equal(g[j], g[i])]
            if (T[i, J] ** 2).sum() > 0:
                mu[i] = max(1.0, np.abs(T[i, J]).sum() ** 2 / (T[i, J] ** 2).sum())

        steps = np.arange(1, n + 1)[:, None]  # roundings of S on its way through the block, over 3
        apart = np.maximum(steps - steps.T, 0)
        read = 3 * op + na + 3 * acc  # of a first token; R^2 gets its doubt through it
        S2k = S0**2 + doubt * (1 + ((2 * tri + na) / read if read else 0))
        pi = ((3 * op + na) * (kE**2 @ S2k) + 3 * acc * steps * (kE**2 @ S2k)
              + 2 * u**2 * (kE * phi) ** 2 @ S2k + na * (kE @ S0) ** 2
              + ((2 * op + na + 3 * acc * apart) * a2 + 2 * u**2 * ag + (slv + na) * A**2) @ U2
              + eta2 * (km + s0 + 2 * km * cU))
        zeta = (T**2 @ (pi + op * v**2 + na * R2) + mu[:, None] ** 2 * (T**2 @ (2 * tri * R2))
                + (2 * op + na) * U2
                + eta2 * ((beta != 0)[:, None] + (T**2).sum(1)[:, None] * np.maximum.accumulate(R2, 0)))

        shared = op * S2 + 2 * G0**2  # errors of the state that all tokens read alike
        Psi = qE - Q @ TK
        omega = ((2 * op + na) * (qE**2 @ S2) + 3 * acc * steps * (qE**2 @ S2)
                 + 2 * u**2 * (qE * phi) ** 2 @ S2 + na * (qE @ S0) ** 2
                 + Q**2 @ (zeta + (op + na) * U2)
                 + ((2 * op + na + 3 * acc * apart) * q2 + 2 * u**2 * qg) @ U2
                 + eta2 * (qn + s0 + (Q**2).sum(1)[:, None] + (km + qn + 1) * cU) + Psi**2 @ (P0 + shared))
        echoing = f["triangle"][0] >= 2**-11 and f["block"] != 1
        if echoing:
            more, states = self.echo(T, A, Q, U, kE, qE, E[-1], W, R)
            omega = omega + more
        if f["operands"][0] >= 2**-11 and f["block"] != 1 and is_repetitive(T, f["operands"][0]):
            omega = omega + op * self.repeated_scores(Q, U)
        sigma_o = np.sqrt(self.case["scale"] ** 2 * omega + (rho["output"] + na) * o**2
                          + f["output"][1] ** 2 / 3)

        self.S = S
        if not (np.any(beta) or np.any(g) or rounded):
            return sigma_o
        W2, En = W**2, E[-1][:, None]
        el = 3 * acc * cef[:, None] * (S**2 + En**2 * S2 + W2.T @ U2) + tiny * (1 + s0)
        if rounded:
            el = el + (f["state"][0] ** 2 if every_token else rho["state"]) * S**2 + f["state"][1] ** 2 / 3
        F = W2.T @ (zeta + (2 * op + na) * U2 + tiny) + el + eta2 * (U**2).sum(0)
        self.Gamma = (En * (G0 + u * phi[-1][:, None] * np.abs(S0))
                      + u * np.sqrt(((W * (D[-1] - D + np.sqrt(prefix[-1] - prefix))) ** 2).T @ U2))
        if rounded and every_token:
            unit, change = f["state"][0] * np.abs(S), np.abs(S - S0)
            self.Gamma = self.Gamma + np.where((change < unit) & (change > 0.05 * unit), change, 0.05 * unit)
        M = W.T @ TK
        Phi = np.diag(E[-1]) - M
        self.P = Phi**2 @ P0 + M**2 @ shared + F
        if echoing:
            self.keep_echoes(states)
        return sigma_o


def deviations(case, x, n, hv):
    """sigma of o [length,V], of the final state and of the states before each chunk [.,K,V]; whether
    there were echoes."""
    q, k, v, g, beta, gamma = activate(case, x, n, hv)
    K, V = k.shape[1], v.shape[1]
    S = np.zeros((K, V))
    if "initial_state" in x:
        S = x["initial_state"][n, hv].T.copy() if case["v_first"] else x["initial_state"][n, hv].copy()
    formats = dict(case["formats"])
    formats["names"] = ["operands", "triangle", "solve", "accumulation", "gate", "state", "output"]
    formats["prefix_sums"] = not formats["per_token"] and formats["block"] != 1
    if formats["per_token"]:
        formats["block"] = 1
    elif formats["block"] == 0:
        formats["block"] = case["chunk"]
    head, o, h, at = Head(case, S, formats), [np.zeros((0, V))], [], 0
    while at < len(k):
        if at % case["chunk"] == 0:
            h.append(head.sigma_state())
        end = min(at + formats["block"], len(k), (at // case["chunk"] + 1) * case["chunk"])
        part = slice(at, end)
        o.append(head.block(q[part], k[part], v[part], g[part], beta[part], gamma[part]))
        at = end
    return np.concatenate(o), head.sigma_state(), np.array(h).reshape(-1, K, V), head.echoed


def difference(got, want):
    """How far sigma is below what it must be, or above the room for it; and how far above, as
    shares of it. Infinite where one is 0 and the other is not."""
    if got.shape != want.shape or not np.all(np.isfinite(got)):
        return np.inf, np.inf
    if np.any((got == 0) != (want == 0)):
        return np.inf, np.inf
    share = (got - want) / np.where(want == 0, 1, want)
    return float(max(np.max(-share, initial=0), np.max(share, initial=0) - ROOM, 0)), float(np.max(share, initial=0))


def check(case, x):
    worst, echoed = np.zeros(2), False
    for n, (b, begin, end) in enumerate(case["sequences"]):
        first = case["first_chunks"][n]
        for hv in range(x["v"].shape[2]):
            o, final_state, h, echoes = deviations(case, x, n, hv)
            echoed = echoed or echoes
            got_h = x["sigma_h"][first : first + len(h), hv]
            got_state = x["sigma_final_state"][n, hv]
            if case["v_first"]:
                got_h, got_state = got_h.swapaxes(1, 2), got_state.T
            for got, want in ((x["sigma_o"][b, begin:end, hv], o), (got_state, final_state), (got_h, h)):
                worst = np.maximum(worst, difference(got, want))
    return worst, echoed


def main():
    dump = subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE).stdout
    count = bad = echoing = 0
    worst, above, exact = 0.0, 0.0, 0
    with np.errstate(over="ignore", under="ignore"):
        for case, arrays in read_cases(dump):
            (error, excess), echoed = check(case, arrays)
            echoing += echoed
            count += 1
            worst, above = max(worst, error), max(above, excess)
            exact += excess <= TOLERANCE
            if not error <= TOLERANCE:
                bad += 1
                print(f"{case['name']}: sigma differs by {error:.3g} of itself")
    print(f"{count} cases, {echoing} with echoes, {bad} differ, largest difference {worst:.3g} of sigma; "
          f"{exact} equal, the others up to {above:.3g} above")
    sys.exit(1 if bad or count < 20 or exact < count // 2 or echoing < 20 else 0)


if __name__ == "__main__":
    main()
