/** What went wrong with a page or a search, as a sentence that the model is given. */
export class WebError extends Error {}
