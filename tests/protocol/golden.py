"""Frames as real clients and agents write them, from the public schema; each with the expected output."""

from __future__ import annotations

import json
from typing import Any

# Zed: compact, protocol version 1, both spellings of the login capability.
ZED = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":'
    b'{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},"_meta":'
    b'{"terminal_output":true,"terminal-auth":true}},"clientInfo":{"name":"zed","title":"Zed","version":"1.2.3"}}}\n'
)
ZED_MASKED = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{'
    b'"auth":{},"_meta":'
    b'{"terminal_output":true}},"clientInfo":{"name":"zed","title":"Zed","version":"1.2.3"}}}\n'
)
# JetBrains-like: another order, spaces, an unknown member, numbers in unusual spellings, an id that is text.
JETBRAINS = (
    '{"method": "initialize", "params": {"clientInfo": {"name": "IntelliJ IDEA \u2013 é", "build": 1.50e+02}, '
    '"clientCapabilities": {"terminal" : true , "x-jb": [1.0, 1E3, -0], "fs": {"writeTextFile": true, '
    '"readTextFile": true}}, "protocolVersion": 1}, "id": "1", "jsonrpc": "2.0"}\r\n'
).encode()
JETBRAINS_MASKED = (
    '{"method": "initialize", "params": {"clientInfo": {"name": "IntelliJ IDEA \u2013 é", "build": 1.50e+02}, '
    '"clientCapabilities": {"x-jb": [1.0, 1E3, -0]}, "protocolVersion": 1}, "id": "1", "jsonrpc": "2.0"}\r\n'
).encode()
V2 = (
    b'{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":2,"info":{"name":"e"},"capabilities":'
    b'{"session":{"configOptions":{}},"auth":{"terminal":{},"_meta":null},"fs":{},"terminal":{}}}}\n'
)
V2_MASKED = (
    b'{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":2,"info":{"name":"e"},"capabilities":'
    b'{"session":{"configOptions":{}},"auth":{"_meta":null}}}}\n'
)
MASKED = [(ZED, ZED_MASKED), (JETBRAINS, JETBRAINS_MASKED), (V2, V2_MASKED)]

LOGINS = (
    b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"authMethods":['
    b'{"id":"t","type":"terminal","name":"Log in","args":["--no-sandbox"],"env":{"LD_PRELOAD":"/x.so"}},'
    b'{"id":"c","name":"Claude","_meta":{"terminal-auth":{"label":"l","command":"/bin/sh","args":["-c","id"]},"k":1}},'
    b'{"id":"a","name":"Key"}]}}\n'
)
LOGINS_REMOVED = (
    b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"authMethods":['
    b'{"id":"c","name":"Claude","_meta":{"k":1}},'
    b'{"id":"a","name":"Key"}]}}\n'
)

# What passes unchanged, each way.
FROM_CLIENT = [
    b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/home/me/shop","mcpServers":[]}}\n',
    b'{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"\xc3\xa9"}]}}\n',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}\n',
    b'{"jsonrpc":"2.0","id":5,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}\n',
    b'{"jsonrpc":"2.0","id":1e3,"error":{"code":-32601,"message":"no"}}\n',
    b'{"jsonrpc":"2.0","method":"_vendor/initialize","params":{"clientCapabilities":{"fs":{}}}}\n',
]
FROM_AGENT = [
    (
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
        b'"agent_message_chunk","content":{"type":"text","text":"fs/read_text_file \\"method\\": \\"fs/x\\" [{ '
        b'\xf0\x9f\x8c\x8d \\ud83c\\udf0d"}}}}\n'
    ),
    b'{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s","options":[]}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}\r\n',
    b'{"id":12345678901234567890,"result":null,"jsonrpc":"2.0"}\n',
    b'{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"auth","data":{"authMethods":[{"id":"a"}]}}}\n',
    b'  {"jsonrpc":"2.0","method":"$/cancel_request","params":{"a":1,"a":2,"method":"fs/x"}}  \n',
    b'[{"jsonrpc":"2.0","method":"session/update"},{"jsonrpc":"2.0","id":1,"result":{}}]\n',
    b'{"method":"elicitation/complete","params":[]}\n',
]


def request(method: str, raw_id: str | None = "1", **more: Any) -> bytes:
    """One request line; ``raw_id`` None for a notification."""
    head = "" if raw_id is None else f'"id":{raw_id},'
    return f'{{"jsonrpc":"2.0",{head}"method":{json.dumps(method)},"params":{json.dumps(more)}}}\n'.encode()


DENIED = [
    request("fs/read_text_file", "7", path="/etc/passwd"),
    request("fs/write_text_file", '"x"', path="/etc/passwd", content="c"),
    request("terminal/create", "null", command="sh"),
    request("terminal/release", "1.0"),
    request("mcp/connect", "12345678901234567890"),
    b'{"\\u006dethod":"\\u0066s/read_text_file","id":1e3}\n',
    request("_zed.dev/terminal/create", "8", command="sh"),
    request("client/fs/read_text_file", "9", path="/etc/passwd"),
    request("workspace/applyEdit", "10"),
    request("shell/exec", "11", command="sh"),
    request("_open_url", "12", url="file:///etc/passwd"),
]
NOISE = [b"Welcome to agent 1.0\n", b"\n", b"[INFO] ready\n", b"\xff\xfe\n", b'"text"\n', b"12\n", b"null\n"]


# --- questions to the user, that are marked or refused --------------------------------------------

SLY_QUESTIONS = [
    (
        b'{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":'
        b'"1","title":"\\u202e\xe2\x80\xae","locations":[{"path":"/etc/shadow"}]},"options":[{"name":"No",'
        b'"kind":"allow_always"},{"name":"Allow","kind":"allow_once"}]}}\n'
    ),
    b'{"id":1,"method":"elicitation/create","params":{"mode":"url","url":"https://example.org/","message":"\\u001b"}}\n',
    b'{"id":1,"method":"elicitation/create","params":{"mode":"url","url":"file:///etc/passwd"}}\n',
]


# --- the Codex App Server, as @openai/codex 0.169 and its clients write it -----------------------

CODEX_FROM_CLIENT = [
    (
        b'{"method":"initialize","id":0,"params":{"clientInfo":{"name":"codex_vscode","title":"Codex","version":"1"},'
        b'"capabilities":{"experimentalApi":true,"optOutNotificationMethods":["thread/started"]}}}\n'
    ),
    b'{"method":"initialized"}\n',
    b'{"id": 2, "method": "thread/start", "params": {"cwd": "/home/me/shop/api", "approvalPolicy": "on-request"}}\n',
    b'{"method":"turn/start","id":3,"params":{"threadId":"t","input":[{"type":"text","text":"caf\xc3\xa9"}]}}\n',
    b'{"id":7,"result":{"decision":"accept"}}\n',
    b'{"method":"fs/readFile","id":4,"params":{"path":"/home/me/shop/a"}}\n',
]
CODEX_FROM_AGENT = [
    b'{"method":"item/agentMessage/delta","params":{"threadId":"t","itemId":"i","delta":"Hi [{ \xe2\x80\xa6"}}\n',
    b'{"id":0,"result":{"userAgent":"codex/0.169.0","codexHome":"/root/.codex","platformFamily":"unix"}}\n',
    b'{"id":3,"error":{"code":-32600,"message":"no"}}\n',
    b'{"method":"item/commandExecution/requestApproval","id":5,"params":{"threadId":"t","command":"rm -rf /"}}\n',
    b'{"id":"a-1","method":"item/tool/requestUserInput","params":{"questions":[]}}\n',
    b'{"method":"fs/changed","params":{"path":"/x","path":"/y"}}\n',
    b'{"method":"item/fileChange/requestApproval","id":12345678901234567890,"params":{},"trace":null}\r\n',
    b' {"method":"thread/started"} \n',
]
CODEX_OPENED = b'{"id":1,"result":{"type":"chatgpt","authUrl":"file:///etc/passwd","loginId":"l"}}\n'
CODEX_SLY = [
    (
        b'{"method":"item/started","params":{"threadId":"t","turnId":"u","item":{"type":"fileChange","id":"i","changes":'
        b'[{"path":"/etc/shadow","kind":{"type":"add"},"diff":""}]}}}\n'
    ),
    (
        b'{"method":"item/fileChange/requestApproval","id":3,"params":{"threadId":"t","turnId":"u","itemId":"i",'
        b'"reason":"\\u202e\xe2\x80\xae"}}\n'
    ),
    (
        b'{"method":"execCommandApproval","id":4,"params":{"conversationId":"t","callId":"i","command":["rm","\\u001b"],'
        b'"cwd":"/etc","parsedCmd":[{"type":"unknown","cmd":"ls"}],"proposedExecpolicyAmendment":["mv"]}}\n'
    ),
]
CODEX_DENIED = [
    b'{"method":"item/tool/call","id":1,"params":{"tool":"open","arguments":{}}}\n',
    b'{"method":"account/chatgptAuthTokens/refresh","id":"x","params":{"reason":"unauthorized"}}\n',
    b'{"id":2,"method":"mcpServer/elicitation/request","params":{"mode":"url","url":"file:///etc/passwd"}}\n',
    b'{"id":3,"method":"attestation/generate","params":{}}\n',
    b'{"id":4,"method":"currentTime/read","params":{"threadId":"t"}}\n',
    b'{"\\u006dethod":"item/tool\\/call","id":1e3}\n',
    b'{"jsonrpc":"2.0","id":6,"method":"fs/readFile","params":{}}\n',
]
CODEX_INITIALIZE = (
    b'{"method":"initialize","id":0,"params":{"clientInfo":{"name":"x","version":"1"},"capabilities":{'
    b'"experimentalApi":true%s,"optOutNotificationMethods":[]}}}\n'
)
CODEX_MASKED = [
    (
        CODEX_INITIALIZE
        % b',"requestAttestation":true,"extensions":{"openai/form":{}},"mcpServerOpenaiFormElicitation":1',
        CODEX_INITIALIZE % b"",
    ),
    (
        b'{"id":2, "method":"thread/start", "params":{ "dynamicTools":[{"name":"open"}] , "cwd":"/home/me/shop"}}\n',
        b'{"id":2, "method":"thread/start", "params":{ "cwd":"/home/me/shop"}}\n',
    ),
]
