/** Lets others have their turn, in the middle of work that never has to wait. */
export function pause(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 0));
}
