import type { ContentBlock, EmbeddedResourceResource } from "@agentclientprotocol/sdk";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { attachment, attachmentAt } from "../engine/attachments.ts";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import type { NewAttachment } from "../sessions/attachments.ts";

/** A message of the editor's user. */
export interface Prompt {
  /** Its text, with `@name` or the address in place of what is attached. */
  text: string;
  attachments: NewAttachment[];
  /** Why a link is not attached, a sentence each. The text names it all the same. */
  left: string[];
}

/**
 * The message that content blocks make: their texts, joined, and what they attach. A link to a file is the file, or the
 * list of a folder, as it is on disk; one to anything else stays an address.
 *
 * @throws SvcError (exit 2) for content that no model takes
 */
export function promptOf(blocks: readonly ContentBlock[], worktree: string): Prompt {
  const prompt: Prompt = { text: "", attachments: [], left: [] };
  const attach = (attached: NewAttachment) => {
    prompt.attachments.push(attached);
    prompt.text += `@${attached.name}`;
  };
  for (const block of blocks) {
    switch (block.type) {
      case "text":
        prompt.text += block.text;
        break;
      case "image": {
        const name = block.uri ? nameOf(block.uri, worktree) : "";
        attach(attachment(name || `image ${prompt.attachments.length + 1}`, decoded(block.data)));
        break;
      }
      case "resource":
        attach(attachment(nameOf(block.resource.uri, worktree), contentOf(block.resource)));
        break;
      case "resource_link": {
        const path = pathOf(block.uri);
        if (path === undefined) {
          prompt.text += block.uri;
          break;
        }
        const name = shortName(path, worktree);
        try {
          attach({ ...attachmentAt(path, worktree), name });
        } catch (error) {
          if (!(error instanceof SvcError)) throw error;
          prompt.text += `@${name}`;
          prompt.left.push(errorMessage(error));
        }
        break;
      }
      default:
        throw usageError("content", `svc takes no content of the type ${block.type}.`);
    }
  }
  if (prompt.text.trim() === "") throw usageError("no_prompt", "The prompt is empty.");
  return prompt;
}

function contentOf(resource: EmbeddedResourceResource): Uint8Array<ArrayBuffer> {
  return "text" in resource ? new TextEncoder().encode(resource.text) : decoded(resource.blob);
}

/** @throws SvcError (exit 2) */
function decoded(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.fromBase64(base64);
  } catch {
    throw usageError("content", "The data of an attachment is no base64.");
  }
}

/** The name of what is at an address: that of a file as {@linkcode shortName}, with the lines that are meant. */
function nameOf(uri: string, worktree: string): string {
  const path = pathOf(uri);
  return path === undefined ? uri : shortName(path, worktree) + (/#.*$/s.exec(uri)?.[0] ?? "");
}

/** The path of a `file:` address; undefined for any other. */
function pathOf(uri: string): string | undefined {
  try {
    const url = new URL(uri);
    return url.protocol === "file:" ? fileURLToPath(url) : undefined;
  } catch {
    return undefined;
  }
}

/** The path from the worktree to a file in it; of any other file, the whole. */
function shortName(path: string, worktree: string): string {
  const name = relative(worktree, path);
  return name.startsWith("..") ? path : name || ".";
}
