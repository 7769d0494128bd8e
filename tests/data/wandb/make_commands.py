"""Makes commands.json with W&B's SDK: the command lines of its agent for some commands and values."""
import json
import os

from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args

VALUES = {
    "a": 1e-05, "b": 0.1, "c": 1.0, "d": 100000, "e": True, "f": False, "g": None, "h": "two words",
    "i": [1, "x", None, 2.5e-07], "j": {"both": "'\"\n", "name": "it's", "on": True, "quote": '"', "rate": 1e-3},
    "k": 1e16, "l": 123456789.125, "m": "", "n": -2.5e-11, "o": "\u00fc\u2713\U0001f600", "p.q": 3, "r": 0.0001, "s": -0.0,
    "t": [], "u": {}, "v": "back\\slash", "w": 1e22,
}
COMMANDS = [
    None,
    ["${env}", "${interpreter}", "${program}", "${args}"],
    ["${interpreter}", "${program}", "--flag", "${args_no_hyphens}"],
    ["${program}", "${args_no_equals}"],
    ["${env}", "A=1", "${program}", "${args_no_boolean_flags}", "--last"],
    ["${program}", "${args_append_hydra}"],
    ["${program}", "${args_override_hydra}"],
    ["${program}", "--json", "${args_json}"],
    ["${program}", "--file", "${args_json_file}", "${other}", "x${program}", "${program} y"],
    ["${program}", "${envvar:HOME_OF_DATA}/x", "${envvar:NOT_SET}", "a${envvar:HOME_OF_DATA}b${envvar:not}", "$HOME", "*", ";", "`id`"],
]
os.environ["HOME_OF_DATA"] = "/data dir"

made = []
for command in COMMANDS:
    words = create_sweep_command(command and list(command))
    known = create_sweep_command_args({"args": {name: {"value": value} for name, value in VALUES.items()}})
    known.update(interpreter=["python"], program=["train.py"], args_json_file=["FILE"], env=["/usr/bin/env"])
    line = []
    for word in map(str, words):
        is_macro = word.startswith("${") and word.endswith("}")
        line += (known.get(word[2:-1]) or []) if is_macro else [word]
    made.append({"command": command, "line": line})
with open("commands.json", "w") as file:
    json.dump({"values": VALUES, "commands": made}, file, indent=1)
    file.write("\n")
