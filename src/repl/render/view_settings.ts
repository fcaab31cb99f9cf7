/** The settings of the same names that say what of a turn is shown (specification 2.13). */
export interface ViewSettings {
  show_thinking: boolean;
  show_errors: boolean;
  show_notes: boolean;
  status_spinner: boolean;
  word_streaming: boolean;
  delegate_echo: boolean;
  subrun_verbosity: "quiet" | "summary" | "full";
}
