"""HTTP around the service: routes, who may ask, how much, and how it ends.

    request -> Guard (host, origin, token) -> route -> body -> place in the queue -> thread -> answer

A refusal is always {"error": one sentence}.
"""

import asyncio
import logging
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as Http
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hybridworld.deploy.chain import Steps
from hybridworld.errors import HybridWorldError, InvalidInput, SolverFailure
from hybridworld.serve import page
from hybridworld.serve.catalogue import Served
from hybridworld.serve.limits import Refusal, Request
from hybridworld.serve.openapi import document
from hybridworld.serve.protocol import VERSION, model_metadata, server_metadata
from hybridworld.serve.service import Service
from hybridworld.serve.tensors import HEADER

log = logging.getLogger("hybridworld.serve")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONNECTIONS = 1024
SLOWEST = 2**18  # bytes per second of a body
LARGE = 2**16  # bytes of a body that others should not wait for
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
OPEN = ("/v2/health/", "/static/")
"""Paths that need no token: they tell nothing but that the server runs."""
SECURITY = [
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


@dataclass(frozen=True)
class Access:
    """Who may ask: everybody on this machine, or everybody with the token."""

    host: str = LOOPBACK[0]
    token: str | None = None

    def __post_init__(self) -> None:
        if self.host not in LOOPBACK and not self.token:
            raise InvalidInput(
                f"The server would listen on {self.host}, beyond this machine: set a token, with --token or HYBRIDWORLD_TOKEN."
            )
        if self.token is not None and (len(self.token) < 8 or not self.token.isascii() or not self.token.isprintable()):
            raise InvalidInput("The token must have at least 8 printable ASCII characters.")

    def check(self, path: str, headers: Headers) -> None:
        """Raise where a request may not be answered. Host and Origin guard against other sites in the user's own browser."""
        host = headers.get("host", "")
        if self.token is None and urlsplit(f"//{host}").hostname not in (*LOOPBACK, self.host):
            raise Refusal(403, "The Host header names another machine: a server without a token answers this machine alone.")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise Refusal(403, "The request comes from a page of another site.")
        if self.token is None or path == "/" or path == "/docs" or path.startswith(OPEN):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secrets.compare_digest(given.strip().encode(), self.token.encode()):
            raise Refusal(401, "This server asks for a token: send it as `Authorization: Bearer TOKEN`.")


class Guard:
    """Checks access, adds security headers, and counts every response."""

    def __init__(self, app: ASGIApp, access: Access, service: Service) -> None:
        self._app, self._access, self._service = app, access, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *SECURITY]
                if self._service.draining:
                    MutableHeaders(scope=message)["connection"] = "close"
                route = getattr(scope.get("route"), "path", "none")
                self._service.metrics.of(self._service.metrics.responses, route, message["status"]).inc()
            await send(message)

        try:
            self._access.check(scope["path"], Headers(scope=scope))
        except (Refusal, ValueError) as error:
            refusal = error if isinstance(error, Refusal) else Refusal(400, "The Host or Origin header makes no sense.")
            await refused(refusal)(scope, receive, told)
            return
        await self._app(scope, receive, told)


def refused(error: Refusal) -> Response:
    """The response to a request that is not answered."""
    headers = {"retry-after": str(max(1, round(error.retry_after)))} if error.retry_after is not None else {}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    if error.status == 408:
        headers["connection"] = "close"  # what comes yet would be taken for another request
    return JSONResponse({"error": str(error)}, error.status, headers)


def create_app(service: Service, access: Access | None = None) -> ASGIApp:
    """The ASGI application."""
    queue = Queue(service)

    async def root(http: Http) -> Response:
        return static_file("index.html")

    async def docs(http: Http) -> Response:
        return static_file("docs.html")

    async def static(http: Http) -> Response:
        return static_file(http.path_params["file"])

    async def openapi(http: Http) -> Response:
        return JSONResponse(document())

    async def metrics(http: Http) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def about(http: Http) -> Response:
        return JSONResponse(server_metadata().model_dump())

    async def live(http: Http) -> Response:
        return Response()

    async def ready(http: Http) -> Response:
        return Response(status_code=200 if service.ready else 503)

    async def model_ready(http: Http) -> Response:
        works = service.warm and not service.draining and served_model(http).name not in service.broken
        return Response(status_code=200 if works else 503)

    async def metadata(http: Http) -> Response:
        return JSONResponse(model_metadata(served_model(http)).model_dump())

    async def infer(http: Http) -> Response:
        served = served_model(http)
        return binary(await queue.steps(http, lambda body: service.infer(served, body, http.headers.get(HEADER))))

    async def models(http: Http) -> Response:
        return JSONResponse(await queue.answer(http, lambda _: page.describe(service.catalogue, service.limits)))

    async def start(http: Http) -> Response:
        served, query = served_by_name(http), dict(http.query_params)
        return binary(await queue.answer(http, lambda _: page.start(served, service.solvers, query, service.limits)))

    async def thresholds(http: Http) -> Response:
        served, query = served_by_name(http), dict(http.query_params)
        return JSONResponse(await queue.answer(http, lambda _: page.thresholds(served, query, service.limits)))

    async def draw(http: Http) -> Response:
        served, header = served_by_name(http), http.headers.get(HEADER)
        return binary(await queue.answer(http, lambda body: page.draw(served, body, header, service.limits)))

    async def future(http: Http) -> Response:
        served, header = served_by_name(http), http.headers.get(HEADER)
        return binary(await queue.answer(http, lambda body: page.future(served, service.solvers, body, header, service.limits)))

    async def download(http: Http) -> Response:
        served, header = served_by_name(http), http.headers.get(HEADER)

        def write(body: bytes) -> bytes:
            model = None if served.model is None else service.routed(served, None)
            what = http.query_params.get("what", "forecast")
            return page.download(served, model, what, body, header, service.limits)

        return Response(await queue.answer(http, write), media_type="application/x-hdf5")

    def served_by_name(http: Http) -> Served:
        return service.catalogue.find(http.path_params["model"])

    def served_model(http: Http) -> Served:
        version = http.path_params.get("version", VERSION)
        if version != VERSION:
            raise Refusal(404, f"There is no version '{version[:40]}': there is {VERSION}.")
        return service.catalogue.model(http.path_params["model"])

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)

    routes = []  # they are tried in turn, so those that are asked for most come first
    for prefix in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
        routes += [
            Route(f"{prefix}/infer", infer, methods=["POST"]),
            Route(f"{prefix}/ready", model_ready),
            Route(prefix, metadata),
        ]
    routes += [
        Route("/", root),
        Route("/docs", docs),
        Route("/static/{file}", static),
        Route("/openapi.json", openapi),
        Route("/metrics", metrics),
        Route("/v2", about),
        Route("/v2/health/live", live),
        Route("/v2/health/ready", ready),
        Route("/page/models", models),
        Route("/page/models/{model}/start", start),
        Route("/page/models/{model}/thresholds", thresholds),
        Route("/page/models/{model}/draw", draw, methods=["POST"]),
        Route("/page/models/{model}/future", future, methods=["POST"]),
        Route("/page/models/{model}/download", download, methods=["POST"]),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=HANDLERS)
    app.router.redirect_slashes = False
    return Guard(app, access or Access(), service)


class Queue:
    """From HTTP to a thread: the body within its size and time, a place in the queue, and a deadline for the answer."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def answer(self, http: Http, work: Callable[[bytes], Any]) -> Any:
        """work(body) in a thread."""
        service, loop = self._service, asyncio.get_running_loop()
        return await self._admitted(
            http, lambda request, body: loop.run_in_executor(service.threads, service.work, request, lambda: work(body))
        )

    async def steps(self, http: Http, steps: Callable[[bytes], Steps[Any]]) -> Any:
        """What steps(body) return, taken at the desk."""
        desk = self._service.desk
        return await self._admitted(http, lambda request, body: desk.answer(request, steps(body), alone=len(body) > LARGE))

    async def _admitted(self, http: Http, answer: Callable[[Request, bytes], Awaitable[Any]]) -> Any:
        """The answer to a request that has arrived within its limits and finds a place."""
        service = self._service
        if not service.warm or service.draining:
            what = "is shutting down" if service.draining else "is starting"
            raise Refusal(503, f"The server {what}: try again later.", retry_after=2)
        if http.headers.get("content-encoding", "identity") != "identity":
            raise Refusal(415, "A compressed body is not supported: send it as it is.")
        self._check_size(http)
        request = service.request(http.client.host if http.client else "unknown")
        with service.admission.holding() as hold:
            body = await self._body(http, request, hold) if http.method == "POST" else b""
            with service.admission.admitted():
                return await answer(request, body)

    def _check_size(self, http: Http) -> None:
        """Refuse a body that is announced to be too large, before it is read."""
        most, length = self._service.limits.body, http.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise Refusal(400, "Content-Length must be a number.")
        if len(length) > 15 or int(length) > most:
            raise Refusal(413, f"The request has {length[:20]} bytes, and may have {most}: send fewer states at once.")

    async def _body(self, http: Http, request: Request, hold: Callable[[int], None]) -> bytes:
        limits, parts, size = self._service.limits, [], 0
        began, most = asyncio.get_running_loop().time(), request.left
        try:
            with self._service.admission.reading():
                async with asyncio.timeout_at(began + min(most, limits.patience)) as end:
                    async for part in http.stream():
                        size += len(part)
                        if size > limits.body:
                            raise Refusal(413, f"The request has more than {limits.body} bytes: send fewer states at once.")
                        hold(len(part))
                        parts.append(part)
                        end.reschedule(began + min(most, limits.patience + size / SLOWEST))
        except TimeoutError as error:
            raise Refusal(408, "The body of the request did not arrive in time.") from error
        except ClientDisconnect as error:
            raise Refusal(400, "The client left before its request was complete.") from error
        return b"".join(parts)


def binary(answer: tuple[bytes, int | None]) -> Response:
    """JSON, with the length of the JSON in a header where bytes follow it."""
    body, length = answer
    if length is None:
        return Response(body, media_type="application/json")
    return Response(body, headers={HEADER: str(length)}, media_type="application/octet-stream")


STATIC = files("hybridworld.serve") / "static"


def static_file(name: str) -> Response:
    """A file of the page. Only names that are in the folder are known, so no path leads out of it."""
    for file in STATIC.iterdir():
        if file.name == name and (kind := KINDS.get(f".{name.rpartition('.')[2]}")):
            return Response(file.read_bytes(), media_type=kind, headers={"cache-control": "no-cache"})
    raise Refusal(404, f"There is no file '{name[:80]}'.")


# Errors.


async def _refusal(http: Http, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return refused(error)


async def _cannot_be(http: Http, error: Exception) -> Response:
    return refused(Refusal(422, str(error)))


async def _http(http: Http, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": f"{http.method} {http.url.path[:80]}: {error.detail}."}, error.status_code, error.headers)


async def _unforeseen(http: Http, error: Exception) -> Response:
    log.error("%s %s failed", http.method, http.url.path, exc_info=error)
    return JSONResponse({"error": "The server made a mistake; its log tells more."}, 500)


HANDLERS: dict[Any, Callable[[Http, Exception], Awaitable[Response]]] = {
    Refusal: _refusal,
    InvalidInput: _cannot_be,
    SolverFailure: _cannot_be,
    HybridWorldError: _unforeseen,
    HTTPException: _http,
    Exception: _unforeseen,
}


# Running it.


class Server(uvicorn.Server):
    """Drains when it is told to stop: it refuses new requests, answers those it has, then ends."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service, self.interrupted = service, False

    def handle_exit(self, sig: int, frame: Any) -> None:
        """The first signal drains, a second Ctrl-C ends it at once."""
        self._service.draining = True
        self.force_exit = self.interrupted and sig == signal.SIGINT
        self.should_exit, self.interrupted = True, sig == signal.SIGINT


def listening(host: str, port: int) -> socket.socket:
    """A socket there; raises with a sentence where there can be none."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise InvalidInput(f"Cannot listen on {host}, port {port}: {error}. Choose another one with --port.") from error


def run(service: Service, access: Access, port: int, browser: bool = False, told: Callable[[str], None] = print) -> bool:
    """Serve until SIGTERM or Ctrl-C; was it Ctrl-C?"""
    with listening(access.host, port) as here:
        shown = "127.0.0.1" if access.host in ("0.0.0.0", "::") else access.host
        address = f"http://{f'[{shown}]' if ':' in shown else shown}:{here.getsockname()[1]}/"
        told(address)
        if browser:
            opened = f"{address}#token={access.token}" if access.token else address
            threading.Timer(1.0, webbrowser.open, [opened]).start()
        grace = int(service.limits.seconds) + 5
        config = uvicorn.Config(
            create_app(service, access), log_level="error", access_log=False, server_header=False,
            proxy_headers=False,  # whoever may set them could pose as another client
            limit_concurrency=CONNECTIONS, timeout_graceful_shutdown=grace, lifespan="on",
        )  # fmt: skip
        server = Server(config, service)
        server.run(sockets=[here])
        return server.interrupted
