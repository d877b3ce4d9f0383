"""Every system in the tables of SBERT-LP (2021) behind one `encode`: by name, from the weights at
hand.

Where the paper has a network that is not at hand, these systems have another; what each one is, its
`line` says. The paper's own are asked for by hub id. Nothing is ever put in another's place
unasked: where weights are not at hand, `load_system` raises `Missing`, and its message says how to
get them.
"""

from rivals.loaders import SYSTEMS, load_system, system_named
from rivals.system import Loaded, Missing, System, SystemConfig, fit_texts
