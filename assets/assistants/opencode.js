// Made by `revdeck hook install opencode`: adds what code reviews found to each message, in a few hundred tokens or none.
import { spawn } from "node:child_process"

const COMMAND = ["REVDECK"]
const MAX_WAIT_MS = 1000

// Calls revdeck with one event and returns its answer. Any failure is an empty answer.
function ask(event, session, folder) {
  return new Promise((resolve) => {
    let answer = ""
    let child
    const finish = (text) => {
      clearTimeout(timer)
      resolve(text)
    }
    const timer = setTimeout(() => {
      child?.kill()
      resolve("")
    }, MAX_WAIT_MS)
    try {
      child = spawn(COMMAND[0], COMMAND.slice(1), { cwd: folder, stdio: ["pipe", "pipe", "ignore"] })
      child.on("error", () => finish(""))
      child.on("close", () => finish(answer))
      child.stdout.on("data", (data) => (answer += data))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify({ hook_event_name: event, session_id: session, cwd: folder }))
    } catch {
      finish("")
    }
  })
}

export const RevdeckPlugin = async ({ directory }) => ({
  "chat.message": async (input, output) => {
    const text = await ask("chat.message", input.sessionID, directory)
    const last = output.parts.at(-1)
    if (!text || !last) return
    // Parts are sorted by id: this one comes last.
    const place = { id: `${last.id}r`, sessionID: last.sessionID, messageID: last.messageID }
    output.parts.push({ ...place, type: "text", text, synthetic: true })
  },
  "experimental.session.compacting": async (input) => {
    await ask("session.compacting", input.sessionID, directory)
  },
})
