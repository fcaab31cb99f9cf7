/** The candidate within two edits of `word` (or that `word` begins), or undefined. */
export function nearest(word: string, candidates: string[]): string | undefined {
  let best: string | undefined;
  let least = 3;
  for (const candidate of candidates) {
    const distance = candidate.startsWith(word) && word.length > 1 ? 1 : edits(word, candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

function edits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
