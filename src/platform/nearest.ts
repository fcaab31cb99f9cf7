/** The candidate within two edits of `word` (or that `word` begins), or undefined. */
export function nearest(word: string, candidates: string[]): string | undefined {
  let best: string | undefined;
  let least = Math.min(3, word.length); // a word of which no letter is left is another word
  for (const candidate of candidates) {
    const distance = candidate.startsWith(word) && word.length > 1 ? 1 : edits(word, candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Edits from one word to another; two neighbours that changed places are one. */
function edits(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
      if (from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1] && i > 1 && j > 1) {
        next[j] = Math.min(next[j]!, before[j - 2]! + 1);
      }
    }
    [before, row] = [row, next];
  }
  return row[to.length]!;
}
