"""The OpenAPI document, made from the models that check the requests."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from hybridworld import __version__
from hybridworld.serve.page import DrawRequest, FutureRequest
from hybridworld.serve.protocol import Fault, InferRequest, InferResponse, ModelMetadata, ServerMetadata

MODELS = (Fault, InferRequest, InferResponse, ModelMetadata, ServerMetadata, DrawRequest, FutureRequest)
FAULTS = {
    "400": "The body is no JSON.",
    "401": "The bearer token is missing or wrong.",
    "404": "There is no such model.",
    "413": "The request or its answer would be too large.",
    "422": "The question cannot be answered; the sentence says why.",
    "429": "This client has used up its solver time; see Retry-After.",
    "503": "The queue is full, or the server starts or stops; see Retry-After.",
    "504": "There was no answer in time.",
}
READY = {"200": {"description": "Yes."}, "503": {"description": "No."}}
BINARY = {
    "name": "Inference-Header-Content-Length", "in": "header", "required": False, "schema": {"type": "integer"},
    "description": "The length of the JSON, where tensors follow it as bytes (binary_data_size).",
}  # fmt: skip


def _path(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query(**names: str) -> list[dict[str, Any]]:
    return [{"name": name, "in": "query", "schema": {"type": kind}} for name, kind in names.items()]


def _body(model: type[BaseModel]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": _schema(model)}}}


def _schema(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _told(model: type[BaseModel] | None = None, kind: str = "application/json") -> dict[str, Any]:
    content = {kind: {"schema": {} if model is None else _schema(model)}}
    return {"200": {"description": "The answer.", "content": content}}


def _faults(*codes: str) -> dict[str, Any]:
    content = {"application/json": {"schema": _schema(Fault)}}
    return {code: {"description": FAULTS[code], "content": content} for code in codes}


WORK = ("400", "401", "404", "413", "422", "429", "503", "504")


def document() -> dict[str, Any]:
    """The description of the server as an OpenAPI 3.1 document."""
    infer = {
        "post": {
            "summary": "Forecast: states in, states later out, with what is known about them",
            "parameters": [*_path("model"), BINARY],
            "requestBody": _body(InferRequest),
            "responses": _told(InferResponse) | _faults(*WORK),
        }
    }
    metadata = {
        "get": {
            "summary": "What a model takes and gives",
            "parameters": _path("model"),
            "responses": _told(ModelMetadata) | _faults("401", "404"),
        }
    }
    ready = {"get": {"summary": "Would a request be answered now?", "parameters": _path("model"), "responses": READY}}
    version = _path("version")
    paths: dict[str, Any] = {
        "/v2": {"get": {"summary": "What the server is", "responses": _told(ServerMetadata) | _faults("401")}},
        "/v2/health/live": {"get": {"summary": "Does the server run?", "responses": {"200": {"description": "Yes."}}}},
        "/v2/health/ready": {"get": {"summary": "Would a request be answered now?", "responses": READY}},
        "/v2/models/{model}": metadata,
        "/v2/models/{model}/ready": ready,
        "/v2/models/{model}/infer": infer,
        "/v2/models/{model}/versions/{version}": _with(metadata, version),
        "/v2/models/{model}/versions/{version}/ready": _with(ready, version),
        "/v2/models/{model}/versions/{version}/infer": _with(infer, version),
        "/metrics": {"get": {"summary": "Prometheus metrics", "responses": _told(kind="text/plain") | _faults("401")}},
        "/page/models": {"get": {"summary": "All models and systems, with their specs", "responses": _told() | _faults("401")}},
        "/page/models/{model}/start": {
            "get": {
                "summary": "States to begin with, from a split (or `blank`)",
                "parameters": [*_path("model"), *_query(split="string", seed="integer", count="integer", frame="integer")],
                "responses": _told(kind="application/octet-stream") | _faults(*WORK),
            }
        },
        "/page/models/{model}/thresholds": {
            "get": {
                "summary": "The threshold of each keep fraction q",
                "parameters": [*_path("model"), *_query(horizon="integer")],
                "responses": _told() | _faults("401", "404", "422", "503"),
            }
        },
        "/page/models/{model}/draw": {
            "post": {
                "summary": "A state after a gesture with a brush",
                "parameters": [*_path("model"), BINARY],
                "requestBody": _body(DrawRequest),
                "responses": _told(kind="application/octet-stream") | _faults(*WORK),
            }
        },
        "/page/models/{model}/future": {
            "post": {
                "summary": "The true future, by the solver",
                "parameters": [*_path("model"), BINARY],
                "requestBody": _body(FutureRequest),
                "responses": _told(kind="application/octet-stream") | _faults(*WORK),
            }
        },
        "/page/models/{model}/download": {
            "post": {
                "summary": "States, or states and their forecast, as HDF5",
                "parameters": [*_path("model"), *_query(what="string"), BINARY],
                "requestBody": _body(InferRequest),
                "responses": _told(kind="application/x-hdf5") | _faults(*WORK),
            }
        },
    }
    schemas = models_json_schema([(model, "validation") for model in MODELS], ref_template="#/components/schemas/{model}")[1]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hybridworld",
            "version": __version__,
            "description": "Open Inference Protocol v2 for hybrid neural world models, and what the page asks for beyond it.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _with(path: dict[str, Any], more: list[dict[str, Any]]) -> dict[str, Any]:
    return {method: told | {"parameters": [*told["parameters"], *more]} for method, told in path.items()}
