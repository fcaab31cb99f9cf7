import { ControlFilter } from "./control_filter.ts";
import { Wrapper } from "./markdown/wrapper.ts";
import type { Output } from "./output.ts";
import type { Style } from "./style.ts";

/** Reasoning as it arrives: dim, in lines of words. */
export class Thoughts {
  readonly #output: Output;
  readonly #filter = new ControlFilter();
  readonly #wrapper: Wrapper;
  #shown = "";

  constructor(output: Output, style: Style) {
    this.#output = output;
    const write = (text: string) => void (this.#shown += text);
    this.#wrapper = new Wrapper(write, ({ text }) => style.dim(text), () => output.columns());
    this.#wrapper.begin("", "");
  }

  write(piece: string): void {
    this.#wrapper.text({ text: this.#filter.write(piece), marks: 0 });
    this.#print();
  }

  end(): void {
    this.#wrapper.flush();
    this.#print();
    this.#output.fresh();
  }

  #print(): void {
    this.#output.print(this.#shown);
    this.#shown = "";
  }
}
