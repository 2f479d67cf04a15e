"""Uses `revdeck lsp` with the client of `pygls`, which checks each message against the types of the protocol."""

import asyncio
import sys
from pathlib import Path
from typing import Union

from lsprotocol import types as lsp
from pygls.lsp.client import BaseLanguageClient
from pygls.protocol import default_converter


def make_converter():
    """Returns the converter of pygls. The one of lsprotocol takes an action that has a command for a bare command."""
    converter = default_converter()

    def structure(value: dict, _: type) -> Union[lsp.Command, lsp.CodeAction]:
        is_command = isinstance(value.get("command"), str)
        return converter.structure(value, lsp.Command if is_command else lsp.CodeAction)

    converter.register_structure_hook(Union[lsp.Command, lsp.CodeAction], structure)
    return converter


async def main(revdeck: str, folder: str) -> None:
    client = BaseLanguageClient("test", "1", converter_factory=make_converter)
    published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

    @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def keep(params: lsp.PublishDiagnosticsParams) -> None:
        published.put_nowait(params)

    await client.start_io(revdeck, "lsp", "--stdio")
    capabilities = lsp.ClientCapabilities(
        general=lsp.GeneralClientCapabilities(position_encodings=[lsp.PositionEncodingKind.Utf16]),
        text_document=lsp.TextDocumentClientCapabilities(
            code_action=lsp.CodeActionClientCapabilities(
                code_action_literal_support=lsp.ClientCodeActionLiteralOptions(
                    code_action_kind=lsp.ClientCodeActionKindOptions(value_set=[lsp.CodeActionKind.QuickFix])
                )
            ),
            hover=lsp.HoverClientCapabilities(content_format=[lsp.MarkupKind.Markdown]),
        ),
    )
    root = Path(folder)
    offered = await client.initialize_async(
        lsp.InitializeParams(
            capabilities=capabilities,
            workspace_folders=[lsp.WorkspaceFolder(uri=root.as_uri(), name="repository")],
        )
    )
    assert offered.server_info.name == "revdeck", offered
    client.initialized(lsp.InitializedParams())

    files = {}
    while len(files) < 2:
        params = await asyncio.wait_for(published.get(), 60)
        files[params.uri] = params.diagnostics
    uri = (root / "long.py").as_uri()
    diagnostic = files[uri][0]
    assert (diagnostic.source, diagnostic.severity) == ("revdeck", lsp.DiagnosticSeverity.Error), diagnostic

    text = (root / "long.py").read_text()
    document = lsp.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=document))
    identifier = lsp.TextDocumentIdentifier(uri=uri)
    hover = await client.text_document_hover_async(
        lsp.HoverParams(text_document=identifier, position=diagnostic.range.start)
    )
    assert diagnostic.data in hover.contents.value, hover
    report = await client.text_document_diagnostic_async(lsp.DocumentDiagnosticParams(text_document=identifier))
    assert list(report.items) == [diagnostic], report
    actions = await client.text_document_code_action_async(
        lsp.CodeActionParams(
            text_document=identifier,
            range=diagnostic.range,
            context=lsp.CodeActionContext(diagnostics=[diagnostic]),
        )
    )
    dismiss = next(action for action in actions if action.title == "Dismiss: intended")
    await client.workspace_execute_command_async(
        lsp.ExecuteCommandParams(command=dismiss.command.command, arguments=dismiss.command.arguments)
    )
    while (params := await asyncio.wait_for(published.get(), 60)).uri != uri or params.diagnostics:
        pass
    await client.shutdown_async(None)
    client.exit(None)
    await asyncio.wait_for(client._server.wait(), 60)
    assert client._server.returncode == 0, client._server.returncode
    print(f"{len(files)} files, {len(actions)} actions, cleared")


asyncio.run(main(*sys.argv[1:]))
