"""Numbers, texts, objects and containers in the place of any argument."""

import random
from dataclasses import replace

import hostile
from call import Call
from callables import public_callables


class Arguments:
    """Any public callable, mostly with one argument that it cannot expect."""

    name = "arguments"

    def __init__(self) -> None:
        self._callables = list(public_callables())

    def draw(self, rng: random.Random) -> Call:
        chosen = rng.choice(self._callables)
        call = chosen.call(rng, 0.15)
        names = [name for name in chosen.names if name not in call.kept]
        given = dict(call.arguments)
        for _ in range(rng.choices((0, 1, 2, 3), (1, 12, 5, 2))[0]):
            if names:
                name = rng.choice(names)
                own = hostile.BY_NAME.get(name, hostile.ANY)
                given[name] = rng.choice(own if rng.random() < 0.6 else hostile.ANY)
        return replace(call, arguments=given)
