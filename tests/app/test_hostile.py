"""Whatever is given, a command ends with a sentence and an exit code, and a function with an error of ours: no traceback."""

import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import hybridworld as hw
from tests.app.commands import run
from tests.app.hostile import build

COMMANDS = {
    # simulate
    "simulate": "Name one system",
    "simulate euler": "Unknown system 'euler'",
    "simulate balls": "Unknown system 'balls'",
    "simulate ball3d --system euler2d": "Name one system",
    "simulate ball3d --split tests": "Unknown split 'tests'",
    "simulate ball3d --seed -3": "The seed is -3",
    "simulate ball3d --seed x": "Invalid value for '--seed'",
    "simulate ball3d --frames 0": "frames is 0",
    "simulate ball3d --frames -5": "frames is -5",
    "simulate ball3d --frames 1.5": "Invalid value for '--frames'",
    "simulate ball3d --frames 99999999999999": "would take",
    "simulate ball3d --out taken": "which is a file",
    "simulate ball3d --out taken/below": "cannot be made",
    "simulate ball3d --out /proc/none": "The folder /proc/none cannot be made",
    "simulate ball3d --param gravity": "--param has 'gravity': write for example gravity=-3",
    "simulate ball3d --param gravity=low": "--param has 'gravity=low'",
    "simulate ball3d --param =3": "no parameter ''",
    "simulate ball3d --param gravity=-3 --param gravity=-4": "--param has 'gravity' twice",
    "simulate ball3d --param weight=3": "no parameter 'weight': there are restitution, gravity",
    "simulate ball3d --param gravity=5": "gravity is 5; allowed is -100 to 0",
    "simulate ball3d --param restitution=nan": "restitution is nan; allowed is 0 to 1",
    "simulate euler2d --param blast_energy=1": "only shapes the beginning",
    "simulate ball3d --resolved 2": "has no grid",
    "simulate ball3d --resolved 0": "Invalid value for '--resolved'",
    "simulate ball3d --objects 5": "--objects is 5: a state of ball3d is not a set of objects",
    "simulate tabletop --objects 0": "Invalid value for '--objects'",
    "simulate tabletop --objects 300": "find no room",
    "simulate missing.xml": "The scene missing.xml cannot be read: No such file",
    "simulate mine.xml --objects 5": "the scene mine.xml has 3 objects, not 5",
    "generate euler2d --out new --objects 5": "a state of euler2d is not a set of objects",
    "predict ball3d --objects 5": "a state of ball3d is not a set of objects",
    "simulate missing.py:Mine": "There is no file missing.py",
    "simulate advance.py:Mine": "advance raised NameError: name 'missing' is not defined (",
    "simulate spec.py:Mine": "`spec` raised AttributeError",
    "simulate no_spec.py:Mine": "`spec` is 7, not a hybridworld.StateSpec",
    "simulate axis.py:Mine": "Axis 'x' runs from 1 to 0",
    "simulate sample.py:Mine": "sample raised KeyError: 'kind' (",
    "simulate shape.py:Mine": "the shape must stay",
    "simulate nothing.py:Mine": "to () of type NoneType",
    "simulate lost.py:Mine": "the solver left finite numbers",
    "simulate memory.py:Mine": "advance raised MemoryError",
    "simulate created.py:Mine": "cannot be created without arguments",
    "simulate two.py": "say which one with two.py:Class",
    "simulate two.py:None": "no Environment class 'None'",
    "simulate imports.py": "does not import: ModuleNotFoundError",
    "simulate syntax.py": "does not import: SyntaxError",
    "simulate exits.py": "does not import: SystemExit",
    "simulate abstract.py": "lacks advance, sample, spec",
    "simulate empty.py": "0 Environment classes",
    # check, systems, unknown words
    "check": "Name one system",
    "check advance.py:Mine": "decay: advance raised NameError",
    "check sample.py:Mine": "decay: sample raised KeyError",
    "check spec.py:Mine": "`spec` raised AttributeError",
    "check shape.py:Mine": "the shape must stay",
    "systems --system foo": "Unknown system 'foo'",
    "sytems": "No such command 'sytems'",
    "simulate ball3d --frame 3": "No such option",
    "demo --out taken/below": "cannot be made",
    # generate, data
    "generate ball3d": "Missing option '--out'",
    "generate ball3d --out '' --scale smoke": "--out is '': give a path",
    "generate ball3d --out taken --scale smoke": "The folder taken cannot be made (there is a file in its place)",
    "generate ball3d --out taken/below --scale smoke": "cannot be made (Not a directory)",
    "generate ball3d --out /proc/none --scale smoke": "The folder /proc/none cannot be made",
    "generate ball3d --out new --count train": "--count has 'train'",
    "generate ball3d --out new --count train=0": "it must be at least 1",
    "generate ball3d --out new --count train=-1": "--count has 'train=-1'",
    "generate ball3d --out new --count other=3": "--count has 'other=3'",
    "generate ball3d --out new --count train=1e3": "--count has 'train=1e3'",
    "generate ball3d --out new --scale big": "scale is 'big'",
    "generate ball3d --out new --scale smoke --count train=2": "not both",
    "generate ball3d --out new --split trian": "Unknown split 'trian'",
    "generate ball3d --out new --dtype int8": "dtype is 'int8'",
    "generate oregonator --out new --count train=100000000": "ask for fewer trajectories",
    "generate ball3d --out new --workers 0": "Invalid value for '--workers'",
    "generate euler2d --out balls --scale smoke": "already holds a dataset",
    "generate ball3d --out unfinished --scale smoke": "manifest.json is damaged",
    "generate advance.py:Mine --out new1 --count train=2": "advance raised NameError",
    "data info nowhere": "There is no folder nowhere/data",
    "data info bare": "has no file that ends in",
    "data info flipped": "does not have the sha256 of the manifest",
    "data info headless": "does not have the sha256 of the manifest",
    "data info unfinished": "manifest.json is damaged",
    "data verify nowhere": "holds no dataset",
    "data verify flipped": "does not have the sha256 of the manifest",
    "data verify headless": "does not have the sha256",
    # train
    "train ball3d": "--data DIR or --stream, one of them",
    "train ball3d --stream --data balls": "--data DIR or --stream, one of them",
    "train --stream": "--stream needs a system",
    "train --settings": "name a system, or give --data",
    "train ball3d --stream --preset smok": "Did you mean 'smoke'",
    "train ball3d --stream --set training.foo=1": "There is no setting 'training.foo'. There are: training.seed",
    "train ball3d --stream --set training.epoch=3": "Did you mean 'training.epochs'",
    "train ball3d --stream --set training.width=3": "Did you mean 'surrogate.width'",
    "train ball3d --stream --set foo.bar=1": "There is no setting 'foo.bar'",
    "train ball3d --stream --set training.lr": "has no value",
    "train ball3d --stream --set training.lr=-1": "training.lr is -1: it must be greater than 0",
    "train ball3d --stream --set training.lr=fast": "training.lr is 'fast': it must be a finite number",
    "train ball3d --stream --set training.lr=nan": "it must be a finite number",
    "train ball3d --stream --set training.epochs=1.5": "it must be a whole number",
    "train ball3d --stream --set training.horizons=0": "at least 1",
    "train ball3d --stream --set training.horizons=a": "training.horizons",
    "train ball3d --data balls --set training.horizons=200 --out new2": "among 1 to 100",
    "train ball3d --stream --set surrogate.backbone=conv --out new3": "conv",
    "train ball3d --stream --set surrogate.backbone=missing.py:Net --out new4": "There is no file missing.py",
    "train ball3d --stream --preset smoke --set surrogate.backbone=network.py:Net --out new5": "no weights",
    "train ball3d --stream --set surrogate.width=100000000": "surrogate.width is 100000000: it must be at most 8192",
    "train ball3d --stream --seed -1": "training.seed is -1",
    "train ball3d --data nowhere": "There is no folder nowhere/data",
    "train ball3d --data bare": "has no file that ends in",
    "train ball3d --data flipped --preset smoke --out new6": "does not have the sha256 of the manifest",
    "train euler2d --data balls": "does not fit the system euler2d",
    "train ball3d --stream --out taken": "The folder taken cannot be made",
    "train ball3d --stream --device nowhere": "The device is 'nowhere'",
    "train --data gas --preset smoke --out run": "run holds a training of ball3d, not of euler2d: choose another folder",
    "train ball3d --data balls --preset smoke --out run": "run holds a training with training.epochs=1",
    "train advance.py:Mine --stream --preset smoke --out new7": "advance raised NameError",
    "train ball3d --minutes nan": "Invalid value for '--minutes'",
    "train ball3d --minutes inf --out new8": "The number of minutes is inf: it must be a number from 0 to 100000",
    "train ball3d --minutes 1e300 --out new9": "The number of minutes is 1e+300",
    # predict
    "predict": "Missing argument 'MODEL'",
    "predict nothing": "There is no model 'nothing'",
    "predict bal3d": "Did you mean 'ball3d'",
    "predict nothing.safetensors": "There is no model nothing.safetensors",
    "predict taken": "is damaged, or no safetensors file",
    "predict text.safetensors": "is damaged, or no safetensors file",
    "predict broken.safetensors": "is damaged",
    "predict balls": "There is no model 'balls': shipped are",
    "predict ''": "There is no model '': shipped are",
    "predict ball3d --horizon 1e300": "The horizon is 1e+300 frames: at most 64000 are answered",
    "predict ball3d --mode 1 --horizon 1e300": "The horizon is 1e+300 frames: at most 64000 are answered",
    "predict ball3d --horizon -1": "The horizon is -1 frames",
    "predict ball3d --horizon 0": "The horizon is 0 frames",
    "predict ball3d --horizon nan": "The horizon is nan frames",
    "predict ball3d --horizon inf": "The horizon is inf frames",
    "predict ball3d --horizon far": "Invalid value for '--horizon'",
    "predict ball3d --horizon 2.5": "which takes whole frames",
    "predict ball3d --mode 3": "The mode is 3: choose 1",
    "predict ball3d --mode two": "Invalid value for '--mode'",
    "predict ball3d --q 1.5": "The keep fraction q is 1.5",
    "predict ball3d --q nan": "The keep fraction q is nan",
    "predict ball3d --mode 1 --q -3": "The keep fraction q is -3",
    "predict ball3d --coverage 1": "The coverage is 1",
    "predict ball3d --coverage 0": "The coverage is 0",
    "predict ball3d --coverage nan": "The coverage is nan",
    "predict ball3d --mode 1 --coverage 7": "The coverage is 7",
    "predict ball3d --count 0": "Invalid value for '--count'",
    "predict ball3d --count 999999999999999": "ask for fewer with --count",
    "predict ball3d --frame -1": "The frame is -1",
    "predict ball3d --frame 999999999999": "frames are solved before a forecast",
    "predict ball3d --split tset": "Unknown split 'tset'",
    "predict ball3d --seed -1": "The seed is -1",
    "predict ball3d --param gravity": "--param has 'gravity'",
    "predict ball3d --param weight=1": "no parameter 'weight'",
    "predict ball3d --param gravity=3": "gravity is 3; allowed is -100 to 0",
    "predict ball3d --input nowhere.h5": "There is no file nowhere.h5",
    "predict ball3d --input fast.h5 --split foo": "--split chooses trajectories of the solver, and --input gives states",
    "predict ball3d --input fast.h5 --seed -4": "--seed chooses trajectories of the solver, and --input gives states",
    "predict ball3d --input fast.h5 --count 2": "--count chooses trajectories of the solver, and --input gives states",
    "predict ball3d --input balls": "There is no file balls",
    "predict ball3d --input text.h5": "cannot be read as HDF5: it is damaged, or another kind of file",
    "predict ball3d --input words.h5": "/state is |S3; expected a dataset of real numbers",
    "predict ball3d --input complex.h5": "/state is complex128; expected a dataset of real numbers",
    "predict ball3d --input group.h5": "/state is a group; expected a dataset of real numbers",
    "predict ball3d --input shape.h5": "the states have shape (1, 8)",
    "predict ball3d --input nan.h5": "every value must be finite",
    "predict ball3d --input outside.h5": "position_x of state 0 is 2; allowed is -0.65 to 0.65 m",
    "predict ball3d --input outside.h5 --mode 1": "position_x of state 0 is 2; allowed is -0.65 to 0.65 m",
    "predict ball3d --input fast.h5": "velocity_y of state 0 is 1e+12",
    "predict ball3d --input none.h5": "there are no states",
    "predict ball3d --input alone.h5": "params have shape none",
    "predict ball3d --input alone.h5 --param gravity=-3": "give all of restitution, gravity with --param",
    "predict ball3d --input rows.h5": "params have shape (3, 2)",
    "predict ball3d --input wordy.h5": "/params is |S1",
    "predict ball3d --input unphysical.h5": "'restitution' of state 0 is 2",
    "predict ball3d --input other.h5": "has no",
    "predict ball3d --input gas/data/train/euler2d-00000.hdf5": "holds states of shape (4, 8, 8)",
    "predict ball3d --input balls/data/train/ball3d-00000.hdf5 --frame 500": "has the frames 0 to 100",
    "predict ball3d --out taken": "The folder taken cannot be made",
    "predict ball3d --out taken/below": "The folder taken/below cannot be made",
    "predict ball3d --out /proc/none": "The folder /proc/none cannot be made",
    "predict ball3d --device nowhere": "The device is 'nowhere'",
    "predict ball3d --backbone missing.py:Net": "There is no file missing.py",
    "predict ball3d --system oregonator": "does not fit the system oregonator",
    "predict ball3d --system foo": "Unknown system 'foo'",
    "predict ball3d --signal ''": "There is no signal ''",
    "predict ball3d --tolerance 0.1 --q 0.5": "give it, or q, or a threshold, but one",
    "predict ball3d --tolerance nan": "The tolerance is nan deviations",
    "predict ball3d --tolerance 0": "The tolerance is 0 deviations",
    "predict ball3d --tolerance 0.1 --mode 1": "it needs mode 2",
    "predict ball3d --signal foo": "There is no signal 'foo' for the model of ball3d: choose 'step-doubling'",
    "predict ball3d --engine foo": "There is no engine 'foo': choose auto",
    "predict ball3d --mode 1 --keep log": "--keep keeps what the solver answers, and in mode 1 that is nothing",
    "predict ball3d --keep taken": "The folder taken cannot be made",
    "predict ball3d --dask nowhere": "No dask scheduler answers at 'nowhere'",
    "predict raw.safetensors": "has no validation scores",
    "predict own.safetensors": "--backbone network.py:Net",
    # calibrate, evaluate
    "calibrate ball3d": "ball3d ships with the package and is not overwritten: name a file with --out",
    "calibrate nothing.safetensors": "There is no model nothing.safetensors",
    "calibrate model.safetensors --count 0": "Invalid value for '--count'",
    "calibrate model.safetensors --data nowhere": "There is no folder nowhere/data",
    "calibrate model.safetensors --data gas": "is about ball3d",
    "calibrate model.safetensors --out /proc/none/m.safetensors": "The folder /proc/none cannot be made",
    "calibrate model.safetensors --out taken/m.safetensors": "The folder taken cannot be made",
    "calibrate model.safetensors --out balls": "balls is a folder: name a file",
    "calibrate model.safetensors --device nowhere": "The device is 'nowhere'",
    "calibrate model.safetensors --horizons 1,2": "--horizons says what code that --model names answers",
    "calibrate --model half.py:f --system ball3d --device nowhere": "The device is 'nowhere'",
    "calibrate --model half.py:f --system ball3d --backbone half.py:f": "--backbone is the code of a model's file",
    "calibrate --model half.py:f --system ball3d --out balls": "balls is a folder: name a file",
    "evaluate model.safetensors": "Missing option '--data'",
    "evaluate model.safetensors --data nowhere": "There is no folder nowhere/data",
    "evaluate model.safetensors --data gas": "is about ball3d",
    "evaluate model.safetensors --data flipped": "does not have the sha256 of the manifest",
    "evaluate model.safetensors --data balls --split tset": "no split 'tset'",
    "evaluate model.safetensors --data balls --count 0": "Invalid value for '--count'",
    "evaluate model.safetensors --data no_test": "which trained the model: name one with --split",
    "evaluate broken.safetensors --data balls": "is damaged",
    "evaluate model.safetensors --data balls --count 4 --out taken/table.md": "The folder taken cannot be made",
    # reproduce, bench
    "reproduce nothing": "nothing",
    "reproduce all --system foo": "--system has 'foo': the paper has",
    "reproduce all --scale big": "--scale has 'big'",
    "reproduce all --model ball3d=missing": "there is no file missing",
    "reproduce all --model ball3d": "--model has 'ball3d': write for example",
    "reproduce all --model foo=model.safetensors": "--model has 'foo=model.safetensors'",
    "bench solvers --system nothing": "Unknown system 'nothing'",
    "bench solvers --frames 0": "Invalid value for '--frames'",
    "bench data --count 1": "Invalid value for '--count'",
    "bench trust model.safetensors": "Missing option '--data'",
    "bench trust model.safetensors --data nowhere": "There is no folder nowhere/data",
    "bench trust model.safetensors --data gas": "is about ball3d",
    "bench trust own.safetensors --data balls": "on the command line --backbone network.py:Net",
    "bench trust own.safetensors --data balls --backbone network.py:Net": "no weights",
    "bench promises nothing": "There is no model 'nothing'",
    "bench promises ball3d --q 2": "The keep fraction q is 2",
    "bench promises ball3d --coverage 1": "The coverage is 1",
    "bench trust model.safetensors --data balls --q 2": "The keep fraction q is 2",
    "bench promises own.safetensors": "--backbone network.py:Net",
    "bench promises model.safetensors --trajectories 1": "Invalid value for '--trajectories'",
    "bench worth": "Name one system",
    "bench worth nothing": "Unknown system 'nothing'",
    "bench worth ball3d --horizon 0": "Invalid value for '--horizon'",
    "bench worth ball3d --split tset": "Unknown split 'tset'",
    "bench worth ball3d --model nothing": "There is no model 'nothing'",
    "bench worth ball3d --grids 64,foo": "The grids are '64,foo'",
    "bench worth ball3d --grids 64": "ball3d has no grid to change",
    "bench tolerance nothing": "There is no model 'nothing'",
    "bench tolerance ball3d --tolerance -1": "The tolerance is -1 deviations",
    "bench engines ball3d --horizon -3": "The horizon is -3 frames",
    "bench engines nothing": "There is no model 'nothing'",
    "bench refine nothing": "There is no model 'nothing'",
    # models, serve, refine, plan, track
    "models bal3d": "Did you mean 'ball3d'",
    "card ball3d --notes binary": "binary is no text",
    "card ball3d --notes nowhere": "No such file or directory: nowhere",
    "card ball3d --out taken": "The folder taken cannot be made",
    "card nothing": "There is no model 'nothing'",
    "serve nothing --no-browser": "There is no model 'nothing'",
    "serve ball3d --port 99999999": "Invalid value for '--port'",
    "export ball3d": "Say what to write",
    "refine ball3d": "Missing option '--from'",
    "refine ball3d --from nowhere": "There is nothing to learn from in nowhere",
    "plan ball3d": "ball3d has no task to give to an agent",
    "plan tabletop --q 2": "The keep fraction q is 2",
    "track ball3d --limit -1": "The limit of doubt is -1: it must be a number of at least 0",
    "track ball3d --limit nan": "The limit of doubt is nan",
    "track ball3d": "ball3d has no parameter with the role `action`",
}
"""Arguments -> what is said about them."""

BALL = hw.system("ball3d")
SAMPLE = BALL.initial("test", 0)
STATE, PARAMS = SAMPLE.state, SAMPLE.params
STATES = np.stack([STATE, STATE])


def wrap(**options):
    return lambda model: hw.wrap(lambda states, horizon: states * 0.5**horizon, "ball3d", **options)


def predict(state=STATE, horizon=8, params=PARAMS, **options):
    return lambda model: model.predict(state, horizon, params, **options)


CALLS = {
    "load(None)": (lambda model: hw.load(None), "The model is none"),
    "load(7)": (lambda model: hw.load(7), "The model is 7"),
    "load('')": (lambda model: hw.load(""), "There is no model '': shipped are"),
    "load(signal=3)": (lambda model: hw.load("ball3d", signal=3), "The signal is 3: it must be a text"),
    "load(engine=3)": (lambda model: hw.load("ball3d", engine=3), "The engine is 3: it must be a text"),
    "load(solver=text)": (lambda model: hw.load("ball3d", solver="ball3d"), "The solver is 'ball3d'"),
    "load(device)": (lambda model: hw.load("ball3d", device="nowhere"), "The device is 'nowhere'"),
    "load(device=7.5)": (lambda model: hw.load("ball3d", device=7.5), "The device is '7.5'"),
    "system(None)": (lambda model: hw.system(None), "The system is none"),
    "system(7)": (lambda model: hw.system(7), "The system is 7"),
    "system('')": (lambda model: hw.system(""), "Unknown system ''"),
    "Gate(name)": (lambda model: hw.Gate("ball3d"), "The model of a gate is 'ball3d'"),
    "Gate(None)": (lambda model: hw.Gate(None), "The model of a gate is none"),
    "Gate(q)": (lambda model: hw.Gate(model, q="0.5"), "The q is '0.5'"),
    "Gate(window)": (lambda model: hw.Gate(model, window=2.5), "The window is 2.5"),
    "Gate(audit)": (lambda model: hw.Gate(model, audit=[0.5]), "The audit share is of type list"),
    "Gate(seed)": (lambda model: hw.Gate(model, seed=-1), "The seed is -1"),
    "Gate.predict": (lambda model: hw.Gate(model).predict(STATE, "8", PARAMS), "The horizon is '8'"),
    "Gate.predict(horizons)": (lambda model: hw.Gate(model).predict(STATES, [8], PARAMS), "one for each of 2 states"),
    "horizon text": (predict(horizon="8"), "The horizon is '8'"),
    "horizon None": (predict(horizon=None), "The horizon is none"),
    "horizon True": (predict(horizon=True), "The horizon is true"),
    "horizon list": (predict(horizon=[8, 16]), "The horizon is of type list"),
    "horizon array": (predict(STATES, np.array([8.0, 16.0, 32.0])), "an array of shape (3,): it must be a positive number"),
    "horizon in an array": (predict(STATES, [8, -1]), "The horizon is -1 frames"),
    "horizon complex": (predict(horizon=8 + 1j), "The horizon is"),
    "horizon nan": (predict(horizon=float("nan")), "The horizon is nan"),
    "horizon object": (predict(horizon=object()), "The horizon is of type object"),
    "horizon huge": (predict(horizon=1e300), "at most 64000 are answered"),
    "horizon whole but huge": (predict(horizon=10**400), "The horizon is"),
    "q text": (predict(q="0.5"), "The keep fraction q is '0.5'"),
    "q array": (predict(q=np.array([0.5, 0.6])), "The keep fraction q is an array of shape (2,)"),
    "mode text": (predict(mode="2"), "The mode is '2'"),
    "mode None": (predict(mode=None), "The mode is none"),
    "mode array": (predict(mode=np.array([1, 2])), "The mode is an array of shape (2,)"),
    "mode 1.5": (predict(mode=1.5), "The mode is 1.5"),
    "threshold text": (predict(threshold="high"), "The threshold is 'high'"),
    "threshold nan": (predict(threshold=float("nan")), "The threshold is nan"),
    "state None": (predict(None), "the states have shape ()"),
    "state text": (predict("ball"), "the states have shape ()"),
    "state ragged": (predict([[1.0], [1.0, 2.0]]), "cannot be read as an array of numbers"),
    "state complex": (predict(STATE + 1j), "type complex128"),
    "state whole": (predict(np.zeros(9, int)), "type int64"),
    "state dict": (predict({"position": 1}), "the states have shape ()"),
    "state outside": (predict(STATE + 3), "the ball must be in its box"),
    "state outside, mode 1": (predict(STATE + 3, mode=1), "the ball must be in its box"),
    "no states": (predict(STATES[:0]), "there are no states"),
    "tensor of whole numbers": (predict(torch.zeros(9, dtype=torch.long)), "type int64"),
    "tensor on meta": (predict(torch.zeros(9, device="meta")), "cannot be read as an array of numbers"),
    "params None": (predict(params=None), "params have shape none"),
    "params text": (predict(params="heavy"), "params have type"),
    "params short": (predict(params=[0.8]), "params have shape (1,)"),
    "params by a wrong name": (predict(params={"gravity": -9, "weight": 1}), "no parameter of the dynamics 'weight'"),
    "params lacking": (predict(params={"gravity": -9}), "params lack 'restitution'"),
    "params outside": (predict(params={"gravity": 9, "restitution": 0.8}), "'gravity' of state 0 is 9"),
    "rollout(links=2.5)": (lambda model: model.rollout(STATE, 8, 2.5, PARAMS), "The number of links is 2.5"),
    "rollout(links=0)": (lambda model: model.rollout(STATE, 8, 0, PARAMS), "The number of links is 0"),
    "rollout(links='3')": (lambda model: model.rollout(STATE, 8, "3", PARAMS), "The number of links is '3'"),
    "solve(None)": (lambda model: model.solve(None, 8, PARAMS), "the states have shape ()"),
    "solve(half a frame)": (lambda model: model.solve(STATE, 0.5, PARAMS), "takes whole frames"),
    "solve(horizon text)": (lambda model: model.solve(STATE, "8", PARAMS), "The horizon is '8'"),
    "solve(far)": (lambda model: model.solve(STATE, 1e300, PARAMS), "at most 1,000,000,000 are solved at once"),
    "errors(None)": (lambda model: model.errors(None, STATE), "expected floating-point numbers"),
    "errors(other shapes)": (lambda model: model.errors(STATE, STATES), "of the same shape"),
    "error_maps(short)": (lambda model: model.error_maps(STATE[:3], STATE[:3]), "expected floating-point numbers"),
    "cell_bound": (lambda model: model.cell_bound(np.ones(1), 8), "has no bound per cell: its states have no cells"),
    "bound(negative)": (lambda model: model.bound(np.array([-1.0]), 8), "a score is a number of at least 0"),
    "bound(text)": (lambda model: model.bound(np.array(["a"]), 8), "a score is a number of at least 0"),
    "bound(nan)": (lambda model: model.bound(np.array([np.nan]), 8), "a score is a number of at least 0"),
    "bound(horizon)": (lambda model: model.bound(np.ones(1), -8), "no error bound at a horizon of -8"),
    "bound(horizon text)": (lambda model: model.bound(np.ones(1), "8"), "The horizon is '8'"),
    "bound(coverage)": (lambda model: model.bound(np.ones(1), 8, "0.9"), "The coverage is '0.9'"),
    "error_bounds(coverage)": (lambda model: model.error_bounds(predict()(model), 2), "The coverage is 2"),
    "error_bounds(None)": (lambda model: model.error_bounds(None), "The forecast is none"),
    "save(None)": (lambda model: model.save(None), "The file is none: give a path"),
    "save(folder)": (lambda model: model.save("balls"), "balls is a folder: name a file"),
    "keeping(3)": (lambda model: model.keeping(3), "The folder is 3: give a path"),
    "coverage text": (predict(coverage="x"), "The coverage is 'x'"),
    "threshold(q)": (lambda model: model.threshold(8, 3), "The keep fraction q is 3"),
    "threshold(horizon)": (lambda model: model.threshold(None, 0.5), "The horizon is none"),
    "simulate(frames)": (lambda model: hw.simulate("ball3d", frames=2.5), "The number of frames is 2.5"),
    "simulate(frames huge)": (lambda model: hw.simulate("ball3d", frames=10**14), "would take"),
    "simulate(params)": (lambda model: hw.simulate("ball3d", params={"weight": 3}), "no parameter 'weight'"),
    "simulate(params text)": (lambda model: hw.simulate("ball3d", params={"gravity": "low"}), "gravity is 'low'"),
    "simulate(params list)": (lambda model: hw.simulate("ball3d", params=[1, 2]), "give them by name"),
    "simulate(system)": (lambda model: hw.simulate(None), "The system is none"),
    "generate(count)": (lambda model: hw.generate("ball3d", "new", count=4), "The count is 4"),
    "generate(count of train)": (lambda model: hw.generate("ball3d", "new", count={"train": 1.5}), "The count of train is 1.5"),
    "generate(out)": (lambda model: hw.generate("ball3d", None), "out is none: give a path"),
    "generate(workers)": (lambda model: hw.generate("ball3d", "new", workers=0), "The number of workers is 0"),
    "generate(splits)": (lambda model: hw.generate("ball3d", "new", splits=3), "The splits are 3"),
    "generate(splits='train')": (lambda model: hw.generate("ball3d", "new", splits="train"), "The splits are 'train'"),
    "generate(splits=[[1]])": (lambda model: hw.generate("ball3d", "new", splits=[[1]]), "Unknown split '[1]'"),
    "generate(out='')": (lambda model: hw.generate("ball3d", ""), "out is '': give a path"),
    "train()": (lambda model: hw.train(), "name a system, as hw.train('ball3d'), or give data"),
    "train(preset)": (lambda model: hw.train("ball3d", preset=3), "The preset is 3: it must be a text"),
    "train(settings)": (lambda model: hw.train("ball3d", settings=["lr"]), "The settings are of type list"),
    "train(setting)": (lambda model: hw.train("ball3d", settings={"training.foo": 1}), "no setting 'training.foo'"),
    "train(data)": (lambda model: hw.train("ball3d", data="nowhere"), "There is no folder nowhere/data"),
    "calibrate(None)": (lambda model: hw.calibrate(None), "The model is none"),
    "calibrate(ball3d)": (lambda model: hw.calibrate("ball3d"), "is not overwritten"),
    "calibrate(count)": (lambda model: hw.calibrate("model.safetensors", count=0), "The number of trajectories is 0"),
    "calibrate(signal)": (lambda model: hw.calibrate("model.safetensors", signal=3), "The signal is 3"),
    "calibrate(backbone)": (lambda model: hw.calibrate("model.safetensors", backbone=3), "The backbone is 3: give its class"),
    "wrap(count='8')": (wrap(count="8"), "The number of trajectories is '8'"),
    "wrap(count=-1)": (wrap(count=-1), "The number of trajectories is -1"),
    "wrap(count=0)": (wrap(count=0), "The number of trajectories is 0"),
    "wrap(count=1.5)": (wrap(count=1.5), "The number of trajectories is 1.5"),
    "wrap(signal=None)": (wrap(signal=None), "The signal is none: it must be a text"),
    "wrap(signal=3)": (wrap(signal=3), "The signal is 3: it must be a text"),
    "wrap(horizons=[[1]])": (wrap(horizons=[[1]]), "The horizons are [1]"),
    "wrap(data=3)": (wrap(data=3), "data is 3: give a path"),
    "wrap(device)": (wrap(device="nowhere"), "The device is 'nowhere'"),
    "Dataset(None)": (lambda model: hw.Dataset(None), "The folder of the dataset is none: give a path"),
    "Dataset": (lambda model: hw.Dataset("nowhere"), "There is no folder nowhere/data"),
    "Dataset.source": (lambda model: hw.Dataset("balls").source("tset"), "no split 'tset'"),
    "Dataset.trajectory": (lambda model: hw.Dataset("balls").trajectory("val", 99), "There is no trajectory 99"),
    "Dataset, flipped": (lambda model: hw.Dataset("flipped").trajectory("train", 0), "does not have the sha256"),
    "Axis(None)": (lambda model: hw.Axis(None, 0, 1, "wall"), "An axis has the name None"),
    "Field('')": (lambda model: hw.Field("", "m"), "A field has the name ''"),
    "Parameter(3)": (lambda model: hw.Parameter(3, "1", "what", {}), "A parameter has the name 3"),
    "in_precision": (lambda model: hw.system("euler2d").in_precision("float16"), "The precision is float16"),
    "initials(None)": (lambda model: BALL.initials("test", None), "The seeds are none"),
    "initials([])": (lambda model: BALL.initials("test", []), "at least one trajectory"),
    "initial(seed)": (lambda model: BALL.initial("test", "3"), "The seed is '3'"),
    "trajectory(frames)": (lambda model: list(BALL.trajectory(STATE, 1.5, PARAMS)), "frames is 1.5"),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with datasets, models, inputs and systems, most of them wrong in one way."""
    folder = tmp_path_factory.mktemp("hostile")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def model():
    return hw.load("ball3d")


def test_there_are_at_least_150_hostile_inputs():
    assert len(COMMANDS) + len(CALLS) >= 150


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_command_ends_with_a_sentence(arguments, place, monkeypatch):
    monkeypatch.chdir(place)
    code, out, err = run(*shlex.split(arguments))
    said = re.sub(r"[\s│╭╮╰╯─]+", " ", f"{out} {err}")  # typer puts its own sentences into a box
    assert code in (1, 2), said
    assert COMMANDS[arguments] in said and "Traceback" not in said
    if code == 1 and not out:
        assert err.splitlines()[-1].startswith("Error: ") and err.rstrip().endswith((".", "?"))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_ends_with_a_sentence(name, place, model, monkeypatch):
    monkeypatch.chdir(place)
    call, words = CALLS[name]
    with pytest.raises(hw.InvalidInput) as caught:
        call(model)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_what_a_users_solver_raises_shows_the_users_line_alone(place, monkeypatch):
    monkeypatch.chdir(place)
    _, _, err = run("simulate", "advance.py:Mine")
    assert re.search(r"\(.*advance\.py, line \d+: return states / missing\)\.\n$", err) and len(err.splitlines()) == 1
    assert "site-packages" not in err and "environment.py" not in err


def test_check_says_once_what_fails_everywhere(place, monkeypatch):
    monkeypatch.chdir(place)
    code, out, _ = run("check", "advance.py:Mine")
    assert code == 1 and len(out.splitlines()) == 1


def test_what_ships_is_never_written_to():
    shipped = Path(hw.__file__).parent / "deploy/models/ball3d.safetensors"
    before = shipped.read_bytes()
    for model in ("ball3d", shipped):
        code, _, err = run("calibrate", model, "--count", 2)
        assert code == 1 and "is not overwritten" in err
    assert shipped.read_bytes() == before


LONG = [
    "calibrate ball3d --count 200000 --out new.safetensors",
    "train ball3d --stream --out new",
    "train euler2d --minutes 30 --out new",
    "predict ball3d --count 100000 --frame 90",
    "card ball3d --count 4000 --out new",
    "bench tolerance ball3d --count 200000",
    "bench promises ball3d",
    "reproduce all --scale smoke --cache new --out new",
]


@pytest.mark.parametrize(
    "command",
    ["generate euler2d --count train=400 --out new", "simulate euler2d --frames 1000"]
    + [pytest.param(each, marks=pytest.mark.slow) for each in LONG],
)
def test_an_interruption_exits_with_130_and_a_word(command, tmp_path):
    """What they say on stderr tells when they have begun; those that say nothing have by then.

    `generate` tells its plan before it imports what it takes, and Python may lose a signal inside an import.
    """
    begun = "trajectories " if command.startswith("generate") else ""
    code = "from hybridworld.app import progress; progress.EVERY = 0; from hybridworld.app.cli import main; main()"
    said = tmp_path / "said"
    with said.open("w") as file:
        run = subprocess.Popen([sys.executable, "-c", code, *shlex.split(command)], cwd=tmp_path, stderr=file)
        patience = time.monotonic() + 30
        while not (begun in said.read_text() and said.read_text()) and run.poll() is None and time.monotonic() < patience:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        run.wait(600)
    assert run.returncode == 130 and "Interrupted" in said.read_text() and "Traceback" not in said.read_text()
