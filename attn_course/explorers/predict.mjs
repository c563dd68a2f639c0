// Predict: a number or an option that the learner commits to before the run measures it.

import { make, show } from "./core.mjs";

const NONE = -1; // no option chosen yet

export function check({ options, choice, value, low, high, confidence, confidences, committed }) {
  const count = options.length;
  if (!Number.isInteger(choice) || choice < NONE || choice >= count) {
    return ["option_allowed", { count, got: choice }];
  }
  if (committed && count && choice === NONE) return ["choose"];
  if (!count && !(value >= low && value <= high)) {
    return ["value_allowed", { low: show(low, 6), high: show(high, 6), got: show(value, 6) }];
  }
  if (confidences.includes(confidence)) return null;
  return ["confidence_allowed", { allowed: confidences.join(", "), got: confidence }];
}

/** What is predicted: the number, or the index of the option. */
export const compute = ({ options, choice, value }) => ({ predicted: options.length ? choice : value });

export function describe(_, { committed, early }, t) {
  if (!committed) return t("uncommitted");
  return t(early ? "before" : "committed");
}

export const tables = () => [];

export function view(ui) {
  const { prompt, options, confidences } = ui.state;
  const answers = options.length
    ? [ui.radios({ name: "choice", label: ui.t("options"), options })]
    : numberControls(ui);
  const sure = ui.slider({
    name: "confidence", label: ui.t("confidence"), values: confidences, text: (part) => `${part} %`,
  });
  ui.style(".attn-ex[data-narrow][data-explorer=Predict] .caption { min-height: 2.8em; }");
  const commit = ui.button(ui.t("commit"), () => ui.set({ committed: true }));
  ui.body.append(
    make("div", { className: "prompt", innerHTML: prompt }),
    ui.row(...answers),
    ui.row(sure, commit),
  );
  return (_, { committed }) => {
    // kept as it was made: a prediction that can be mended afterwards predicts nothing
    for (const control of ui.body.querySelectorAll("input, button")) ui.enable(control, !committed);
  };
}

// The slider is quick, the field exact; both show the same value.
function numberControls(ui) {
  const { low, high, unit } = ui.state;
  const label = unit ? ui.t("value_in", { unit }) : ui.t("value");
  const text = (value) => `${show(value)} ${unit}`.trim();
  const slider = ui.slider({ name: "value", label, low, high, step: (high - low) / 100, text });
  const field = ui.number({
    label: ui.t("exact"),
    read: ({ value }) => Number(value.toPrecision(6)),
    write: (value) => ({ value }),
  });
  return [slider, field];
}
