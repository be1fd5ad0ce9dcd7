"""Runs where the package the_well is installed: opens datasets as its users do and saves every sample it returns.

python read_with_the_well.py REQUESTS.json OUT.npz

A request is {"class": ..., "normalization": name or null, "options": {...}}. Array `k/i/key` of the answer is `key` of sample i
of request k; `k/metadata` is what the loader has understood, as JSON.
"""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
from the_well import data
from the_well.data import normalization


def main(requests, out):
    np.random.seed(0)  # noqa: NPY002 (the package draws random strides from the global generator)
    answer = {}
    for number, request in enumerate(json.loads(Path(requests).read_text())):
        kind = request["normalization"] and getattr(normalization, request["normalization"])
        dataset = getattr(data, request["class"])(normalization_type=kind, **request["options"])
        answer[f"{number}/metadata"] = json.dumps(dataclasses.asdict(dataset.metadata))
        for index in range(len(dataset)):
            for key, value in dataset[index].items():
                answer[f"{number}/{index}/{key}"] = value.numpy()
    np.savez(out, **answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
