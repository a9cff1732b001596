"""The peer of `lamella bench --peer torch`: times calls of PyTorch when it is asked to.

One line of JSON each way. The program carries this text; `python3 -c TEXT` runs it.
"""
import gc
import json
import signal
import sys
import time
import warnings

warnings.simplefilter("ignore")  # of what torch itself imports
signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks the program to stop still gets its table


def answer(**what):
    print(json.dumps(what), flush=True)


try:
    import torch
except Exception as wrong:  # whatever keeps it from being loaded is the answer
    answer(error=f"torch cannot be loaded ({type(wrong).__name__}: {wrong})".replace("\n", " "))
    sys.exit(0)

torch.manual_seed(1)


def filled(sizes, dtype, fill, bound):
    wide = torch.float64
    if fill == "mask" or dtype == torch.bool:
        return torch.rand(sizes) > 0.5
    if fill == "index":
        return torch.randint(0, max(bound, 1), sizes, dtype=dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(1, 100, sizes).to(dtype)
    if fill == "uniform":
        return (torch.rand(sizes, dtype=wide) * 0.5 + 0.25).to(dtype)
    x = torch.randn(sizes, dtype=wide)
    if fill == "definite":
        x = x @ x.mT / sizes[-1] + torch.eye(sizes[-1], dtype=wide)
    elif fill == "triangular":
        x = torch.tril(x, -1) / sizes[-1] + torch.eye(sizes[-1], dtype=wide)
    return x.to(dtype)


def t(sizes, dtype, fill="normal", layout="contiguous", bound=0):
    """An operand as the program makes it: other numbers, the same kind and strides."""
    dtype, stored = getattr(torch, dtype), list(sizes)
    if layout == "transposed":
        stored[-1], stored[-2] = stored[-2], stored[-1]
        return filled(stored, dtype, fill, bound).mT
    if layout == "stepped":
        stored[-1] *= 2
        return filled(stored, dtype, fill, bound)[..., ::2]
    if layout in ("broadcast", "column"):
        stored[0 if layout == "broadcast" else -1] = 1
        return filled(stored, dtype, fill, bound).expand(sizes)
    return filled(stored, dtype, fill, bound)


def prepared(setup, call, into):
    torch.set_grad_enabled(False)  # a row that records says so
    scope = {"torch": torch, "t": t}
    exec(setup, scope)
    plain = eval("lambda: " + call, scope)
    result = plain()
    if not into:
        return plain
    try:
        scope["o"] = torch.empty_like(result)
        inside = eval("lambda: " + into, scope)
        inside()
        return inside
    except (TypeError, RuntimeError):
        return plain


def timed(call, calls):
    begin, cpu = time.perf_counter_ns(), time.thread_time_ns()
    for _ in range(calls):
        call()
    return time.thread_time_ns() - cpu, time.perf_counter_ns() - begin


def serve():
    call = None
    gc.disable()
    for line in sys.stdin:
        asked = json.loads(line)
        if "call" in asked:
            torch.set_num_threads(asked["threads"])
            try:
                call = prepared(asked["setup"], asked["call"], asked["into"])
                answer()
            except Exception as wrong:  # names, types, sizes: the row is without its peer
                call = None
                answer(error=f"{type(wrong).__name__}: {wrong}".replace("\n", " ")[:200])
        elif "drop" in asked:
            call = None
            gc.collect()
            answer()
        elif call is None:
            answer(error="nothing is prepared")
        else:
            calls = asked["calls"]
            if calls == 0:
                calls = 1
                while timed(call, calls)[1] < asked["seconds"] * 1e9:
                    calls *= 2
            cpu, real = timed(call, calls)
            answer(cpu_ns=cpu / calls, real_ns=real / calls, calls=calls)


answer(version=f"PyTorch {torch.__version__}")
serve()
