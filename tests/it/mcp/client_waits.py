"""Waits for a review with the Python SDK: subscription, progress, cancellation; then a server that only reads."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PATIENCE_SECONDS = 60


def field(value: object, name: str, old_name: str) -> object:
    """Returns a field of the SDK's version 2, or of version 1."""
    return getattr(value, name) if hasattr(value, name) else getattr(value, old_name)


def server(revdeck: str, folder: str, *flags: str) -> StdioServerParameters:
    return StdioServerParameters(command=revdeck, args=["-C", folder, "mcp", *flags], env=dict(os.environ))


async def wait_for_review(revdeck: str, folder: str) -> None:
    updated: asyncio.Queue[str] = asyncio.Queue()

    async def handle(message: object) -> None:
        notification = getattr(message, "root", message)
        if getattr(notification, "method", "") == "notifications/resources/updated":
            await updated.put(str(notification.params.uri))

    async def next_update(uri: str) -> None:
        while await asyncio.wait_for(updated.get(), PATIENCE_SECONDS) != uri:
            pass

    parameters = server(revdeck, folder)
    async with (
        stdio_client(parameters) as (read, write),
        ClientSession(read, write, message_handler=handle) as session,
    ):
        await session.initialize()

        async def call(name: str, **arguments: object) -> dict:
            result = await session.call_tool(name, arguments)
            assert not field(result, "is_error", "isError"), (name, result)
            return field(result, "structured_content", "structuredContent")

        await session.subscribe_resource("revdeck://runs")
        steps: asyncio.Queue[tuple[float, float | None, str | None]] = asyncio.Queue()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            await steps.put((progress, total, message))

        arguments = {"scope": "worktree", "wait_seconds": 600}
        waiting = asyncio.create_task(session.call_tool("request_review", arguments, progress_callback=report))
        progress, total, message = await asyncio.wait_for(steps.get(), PATIENCE_SECONDS)
        assert progress < 100 and total == 100 and message, (progress, total, message)
        await next_update("revdeck://runs")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        # The review goes on without the call.
        active = (await call("review_status"))["active"]
        assert len(active) == 1, active
        ended = await call("request_cancel", run_id=active[0]["run_id"], reason="no longer needed")
        assert ended["status"] == "cancelled", ended
        await next_update("revdeck://runs")


async def read_only(revdeck: str, folder: str) -> int:
    parameters = server(revdeck, folder, "--read-only")
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        refused = await session.call_tool("request_review", {"scope": "worktree"})
        assert field(refused, "is_error", "isError"), refused
        assert "this server only reads" in refused.content[0].text, refused
        return len((await session.list_tools()).tools)


async def main(revdeck: str, folder: str) -> None:
    await wait_for_review(revdeck, folder)
    print(f"waited; {await read_only(revdeck, folder)} reading tools")


asyncio.run(main(*sys.argv[1:]))
