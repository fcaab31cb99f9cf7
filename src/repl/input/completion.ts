/** What may stand at the cursor: each candidate replaces `line[from..cursor]`. */
export interface Completion {
  from: number;
  candidates: Candidate[];
}

export interface Candidate {
  text: string;
  /** Shown beside it. */
  description?: string;
}

export type Completer = (line: string, cursor: number) => Promise<Completion> | Completion;
