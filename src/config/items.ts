/**
 * Edits of single items in the text of a JSON file with comments. The edits of `jsonc-parser` drop the
 * comments between a removed item and its neighbour, and inside a replaced value; these keep all comments.
 *
 * @module
 */

import { createScanner, type Node } from "jsonc-parser";

/** A property to add to an object, or, without a name, an element to add to an array. */
export interface Item {
  name?: string;
  value: unknown;
}

/** Adds an item at the end of an object or array, formatted like its neighbours. */
export function appendItem(text: string, container: Node, item: Item): string {
  const close = endOf(container) - 1;
  const inside = tokensIn(text, container.offset + 1, close);
  const tail = inside.at(-1);
  const last = container.children!.at(-1);
  const outer = indentAt(text, container.offset);
  const eol = eolOf(text);
  if (last === undefined) {
    const from = tail?.end ?? container.offset + 1;
    if (item.name === undefined && tail === undefined) {
      return splice(text, from, close, render(item, outer, text));
    }
    const indent = outer + unitOf(text);
    return splice(text, from, close, eol + indent + render(item, indent, text) + eol + outer);
  }
  const lines = startsLine(text, last.offset) || tail!.text.startsWith("//");
  const indent = startsLine(text, last.offset) ? indentAt(text, last.offset) : outer + unitOf(text);
  const trailing = inside.some((token) => isComma(token) && token.offset >= endOf(last));
  const added = (lines ? eol + indent : " ") + render(item, indent, text) + (trailing ? "," : "");
  const result = splice(text, tail!.end, tail!.end, added);
  return trailing ? result : splice(result, endOf(last), endOf(last), ",");
}

/** Adds an array element before another one. */
export function insertItem(text: string, next: Node, value: unknown): string {
  const indent = indentAt(text, next.offset);
  const gap = startsLine(text, next.offset) ? eolOf(text) + indent : " ";
  return splice(text, next.offset, next.offset, `${render({ value }, indent, text)},${gap}`);
}

/** Removes a property or an array element with its comma, and its line if that is empty then. */
export function removeItem(text: string, item: Node): string {
  const container = item.parent!;
  const tokens = tokensIn(text, container.offset + 1, endOf(container) - 1);
  const solid = tokens.filter((token) => !isComment(token));
  const before = solid.findLast((token) => token.end <= item.offset);
  const after = solid.find((token) => token.offset >= endOf(item));
  const comma = isComma(after) ? after : isComma(before) ? before : undefined;
  const kept = commentsIn(text, item);

  let [start, end] = [item.offset, endOf(item)];
  if (comma !== undefined && comma === after && blank(text.slice(end, comma.offset))) {
    end = comma.end;
  }
  const own = startsLine(text, start);
  const lineEnd = endOfLine(text, end);
  let replacement = kept;
  if (blank(text.slice(end, lineEnd))) {
    if (own && kept === "") [start, end] = [startOfLine(text, start), lineEnd];
  } else {
    if (own || comma !== before) end += text.slice(end).search(/[^ \t]|$/);
    // The text after a line comment must start on a new line.
    if (kept !== "") replacement += eolOf(text) + indentAt(text, start);
  }
  if (!own && kept === "" && before !== undefined && comma === before) {
    if (blank(text.slice(before.end, start))) start = before.end;
  }
  let result = splice(text, start, end, replacement);
  if (comma !== undefined && comma.offset < start) {
    result = splice(result, comma.offset, comma.end, "");
  } else if (comma !== undefined && comma.offset >= end) { // a comment stands before it
    const shift = result.length - text.length;
    result = splice(result, comma.offset + shift, comma.end + shift, "");
  }
  return result;
}

/** Replaces the value of a property or an array element; comments in the old value move above it. */
export function replaceValue(text: string, item: Node, node: Node, value: unknown): string {
  const kept = commentsIn(text, node);
  const indent = indentAt(text, item.offset);
  const result = splice(text, node.offset, endOf(node), render({ value }, indent, text));
  return kept === ""
    ? result
    : splice(result, item.offset, item.offset, kept + eolOf(text) + indent);
}

interface Token {
  text: string;
  offset: number;
  end: number;
}

/** The tokens between two offsets, including comments. */
function tokensIn(text: string, from: number, to: number): Token[] {
  const scanner = createScanner(text, false);
  scanner.setPosition(from);
  const tokens: Token[] = [];
  for (;;) {
    scanner.scan();
    const offset = scanner.getTokenOffset();
    if (offset >= to) return tokens;
    const end = offset + scanner.getTokenLength();
    const token = text.slice(offset, end);
    if (!blank(token)) tokens.push({ text: token, offset, end });
  }
}

function isComma(token: Token | undefined): token is Token {
  return token?.text === ",";
}

function isComment(token: Token): boolean {
  return token.text.startsWith("/");
}

function commentsIn(text: string, node: Node): string {
  return tokensIn(text, node.offset, endOf(node)).filter(isComment).map((token) => token.text)
    .join(eolOf(text) + indentAt(text, node.offset));
}

function render({ name, value }: Item, indent: string, text: string): string {
  const content = format(value, indent, unitOf(text), eolOf(text));
  return name === undefined ? content : `${JSON.stringify(name)}: ${content}`;
}

/** JSON on several lines, with lists of scalars on one line. */
function format(value: unknown, indent: string, unit: string, eol: string): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inner = indent + unit;
  const list = Array.isArray(value);
  const items = list
    ? value.map((item) => format(item, inner, unit, eol))
    : Object.entries(value).map(([name, item]) =>
      `${JSON.stringify(name)}: ${format(item, inner, unit, eol)}`
    );
  const [open, close] = list ? "[]" : "{}";
  if (items.length === 0) return open! + close;
  if (list && value.every((item) => typeof item !== "object" || item === null)) {
    return `${open}${items.join(", ")}${close}`;
  }
  return `${open}${eol}${inner}${items.join(`,${eol}${inner}`)}${eol}${indent}${close}`;
}

function splice(text: string, from: number, to: number, content: string): string {
  return text.slice(0, from) + content + text.slice(to);
}

function endOf(node: Node): number {
  return node.offset + node.length;
}

function blank(text: string): boolean {
  return text.trim() === "";
}

function startOfLine(text: string, offset: number): number {
  return text.lastIndexOf("\n", offset - 1) + 1;
}

function endOfLine(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  return end < 0 ? text.length : end + 1;
}

function startsLine(text: string, offset: number): boolean {
  return blank(text.slice(startOfLine(text, offset), offset));
}

function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(startOfLine(text, offset)))![0];
}

function eolOf(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/** One level of indentation. */
function unitOf(text: string): string {
  return /^([ \t]+)\S/m.exec(text)?.[1] ?? "  ";
}
