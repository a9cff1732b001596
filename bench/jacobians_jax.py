#!/usr/bin/env python3
"""The calls of bench/jacobians.cpp under jax.jit, one thread (pip install jax)."""
import os
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import jax  # noqa: E402  (reads the flags)
import numpy  # noqa: E402

SAMPLES, CALLS = 21, 300
rng = numpy.random.default_rng(0)
w, v = (jax.numpy.asarray(rng.standard_normal((64, 64)) / 8, dtype="float32") for _ in range(2))
x = jax.numpy.asarray(rng.standard_normal(64), dtype="float32")


def tanh_map(at):
    return jax.numpy.tanh(v @ jax.numpy.tanh(w @ at))


def measure(name, call):
    call(x).block_until_ready()
    us = []
    for _ in range(SAMPLES):
        begin = time.perf_counter()
        for _ in range(CALLS):
            result = call(x)
        result.block_until_ready()
        us.append((time.perf_counter() - begin) / CALLS * 1e6)
    us.sort()
    print(f"{name:16} least {us[0]:6.1f} us, median {us[SAMPLES // 2]:6.1f} us (jax {jax.__version__})")


measure("jacrev", jax.jit(jax.jacrev(tanh_map)))
measure("hessian of sum", jax.jit(jax.hessian(lambda at: tanh_map(at).sum())))
