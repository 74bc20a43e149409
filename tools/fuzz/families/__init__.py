"""The families, by name. A new one is a module here and a line below."""

from call import Family

from .arguments import Arguments
from .arrays import Arrays
from .command import Command
from .crossings import Crossings
from .files import Files
from .frames import Frames
from .passes import Passes
from .perturbations import Perturbations
from .stores import Stores

_ALL: tuple[type[Family], ...] = (
    Arguments, Arrays, Frames, Command, Files, Stores, Passes, Perturbations, Crossings,
)  # fmt: skip

FAMILIES = {family.name: family() for family in _ALL}
