// deno-lint-ignore-file no-console
/**
 * The floor: the least that a Deno program can do to hold the same conversation. It sends the messages,
 * reads the streamed answer, reads the file it is told to read, and writes one file at the end.
 *
 * Arguments: base URL, prompt, file to write.
 */

interface Call {
  id: string;
  function: { name: string; arguments: string };
}

interface Message {
  role: string;
  content: string | null;
  tool_calls?: Call[];
  tool_call_id?: string;
}

const READ = {
  type: "function",
  function: {
    name: "read",
    description: "Read a file.",
    parameters: {
      type: "object",
      properties: {
        path: { type: "string" },
        offset: { type: "number" },
        limit: { type: "number" },
      },
    },
  },
};

const [url, prompt, file] = Deno.args;
if (url === "--version") {
  console.log("floor");
} else {
  const messages: Message[] = [{ role: "user", content: prompt! }];
  for (;;) {
    const answer = await ask(messages);
    messages.push(answer);
    for (const call of answer.tool_calls ?? []) {
      const { path, offset, limit } = JSON.parse(call.function.arguments);
      const lines = (await Deno.readTextFile(path)).split("\n");
      const content = lines.slice(offset - 1, offset - 1 + limit).join("\n");
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
    if (answer.tool_calls === undefined) break;
  }
  await Deno.writeTextFile(file!, JSON.stringify(messages));
  console.log(messages.at(-1)!.content);
}

async function ask(messages: Message[]): Promise<Message> {
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "bench", stream: true, messages, tools: [READ] }),
  });
  const answer: Message = { role: "assistant", content: "" };
  let rest = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const events = (rest + chunk).split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      const data = event.slice("data: ".length);
      if (data === "[DONE]") continue;
      const delta = JSON.parse(data).choices[0]?.delta;
      if (delta?.content) answer.content += delta.content;
      for (const call of delta?.tool_calls ?? []) {
        const calls = answer.tool_calls ??= [];
        const known = calls[call.index];
        if (known) known.function.arguments += call.function.arguments;
        else calls[call.index] = call;
      }
    }
  }
  return answer;
}
