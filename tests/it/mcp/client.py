"""Calls every tool, resource and prompt of `revdeck mcp` with the Python SDK, which checks results by their schemas."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def field(value: object, name: str, old_name: str) -> object:
    """Returns a field of the SDK's version 2, or of version 1."""
    return getattr(value, name) if hasattr(value, name) else getattr(value, old_name)


async def main(revdeck: str, folder: str) -> None:
    parameters = StdioServerParameters(command=revdeck, args=["-C", folder, "mcp"], env=dict(os.environ))
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        assert len(tools) == 9, tools

        async def call(name: str, **arguments: object) -> dict:
            # The session validates the structured result against the tool's output schema.
            result = await session.call_tool(name, arguments)
            assert not field(result, "is_error", "isError"), (name, result)
            return field(result, "structured_content", "structuredContent")

        assert "auto_review_ledger" in (await call("auto_review_ledger"))["ledger"]
        findings = (await call("list_findings"))["findings"]
        runs = (await call("list_runs"))["runs"]
        assert (await call("review_status"))["undecided"]["total"] == len(findings)
        first, last = findings[0], findings[-1]
        details = await call("auto_review_details", run_id=first["run_id"], finding_id=first["finding_id"])
        assert details["findings"][0]["title"] == first["title"]
        assert (await call("request_review", scope="all", wait_seconds=60))["ended"]
        assert (await call("claim_addressed", finding_id=first["finding_id"], note="rewritten"))["changed"]
        assert (await call("dispute", finding_id=last["finding_id"], reason="intended"))["recorded"]
        cancelled = await call("request_cancel", run_id=runs[0]["run_id"], reason="not needed")
        assert cancelled["outcome"] == "already_ended", cancelled
        failed = await session.call_tool("auto_review_details", {"run_id": "ar_nothing"})
        assert field(failed, "is_error", "isError"), failed
        resources = (await session.list_resources()).resources
        for resource in resources:
            assert (await session.read_resource(resource.uri)).contents[0].text is not None
        templates = await session.list_resource_templates()
        assert len(field(templates, "resource_templates", "resourceTemplates")) == 2
        prompt = await session.get_prompt("work_through_findings", {"priority": "p3"})
        assert prompt.messages[0].content.text
        print(f"{len(tools)} tools, {len(resources)} resources")


asyncio.run(main(*sys.argv[1:]))
