import type { CallToolResult } from "@modelcontextprotocol/client";

/** The text that a call's result comes to; what is no text is named with its type and size. */
export function resultText(result: CallToolResult): string {
  const blocks = result.content.map(blockText).filter((text) => text !== "");
  const data = result.structuredContent;
  if (blocks.length === 0 && data !== undefined) blocks.push(JSON.stringify(data, null, 2));
  const text = blocks.join("\n") || "(no content)";
  return result.isError && !text.startsWith("Error:") ? `Error: ${text}` : text;
}

function blockText(block: CallToolResult["content"][number]): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type} ${block.mimeType}, ${size(block.data)}]`;
    case "resource_link":
      return `[resource ${block.uri}]`;
    case "resource":
      return "text" in block.resource
        ? `[resource ${block.resource.uri}]\n${block.resource.text}`
        : `[resource ${block.resource.uri}, ${size(block.resource.blob)}]`;
    default:
      return `[${(block as { type: string }).type}]`;
  }
}

/** Of what is written in base64. */
function size(data: string): string {
  return `${Math.floor((data.length * 3) / 4)} bytes`;
}
