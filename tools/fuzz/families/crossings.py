"""Relations that hold for every method and table where features meet."""

import random

from call import Call
from relations import RELATIONS


class Crossings:
    """A relation of the tests, with a method, a table and other arguments."""

    name = "crossings"

    def draw(self, rng: random.Random) -> Call:
        relation = rng.choice(list(RELATIONS))
        arguments = {"relation": repr(relation)}
        for name, values in RELATIONS[relation][1].items():
            arguments[name] = repr(rng.choice(list(values)))
        arguments["seed"] = str(rng.randrange(10**6))
        prelude = "from relations import *"
        return Call("crossed", arguments, prelude, kept=("relation",))
