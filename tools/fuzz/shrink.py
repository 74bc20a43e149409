"""The shortest call that still fails in the same way."""

from call import Call, Outcome
from executor import Executor


def shrink(executor: Executor, call: Call, outcome: Outcome) -> tuple[Call, bool]:
    """Arguments dropped one by one while the failure stays the same one; False if it
    does not come again in a fresh process."""
    executor.close()
    if executor.judge(call).key != outcome.key:
        return call, False
    shorter = True
    while shorter:
        shorter = False
        for candidate in call.shorter():
            if executor.judge(candidate).key == outcome.key:
                call, shorter = candidate, True
                break
    return call, True
