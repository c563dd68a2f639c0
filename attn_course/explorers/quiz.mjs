// Quiz: a question with one right option; the chosen option explains itself.

import { make } from "./core.mjs";

const NONE = -1; // nothing chosen, nothing answered

export function check({ options, choice, answer }) {
  for (const index of [choice, answer]) {
    if (!Number.isInteger(index) || index < NONE || index >= options.length) {
      return ["option_allowed", { count: options.length, got: index }];
    }
  }
  return null;
}

export const compute = ({ options, answer }) => ({
  answered: answer !== NONE,
  right: answer !== NONE && options[answer].right,
});

// What is to be said stands in the reasons, with its markup.
export const describe = () => "";

export const tables = () => [];

export function view(ui) {
  const { prompt, options } = ui.state;
  const answer = ui.button(ui.t("answer"), () => {
    if (ui.state.choice === NONE) ui.refuse(ui.t("choose"));
    else ui.set({ answer: ui.state.choice });
  });
  const reasons = options.map((option) => reason(ui, option));
  // All reasons lie on one another, so that none changes the height when it is shown.
  const place = make("div", { className: "reasons" });
  place.append(...reasons);
  ui.body.append(
    make("div", { className: "prompt", innerHTML: prompt }),
    ui.radios({ name: "choice", label: ui.t("options"), options: options.map(({ text }) => text) }),
    ui.row(answer),
    place,
  );
  let before = NONE;
  return (_, state) => {
    reasons.forEach((element, k) => element.classList.toggle("shown", k === state.answer));
    if (state.answer !== before && state.answer !== NONE) {
      ui.announce(Array.from(reasons[state.answer].children, (part) => part.textContent).join(" "));
    }
    before = state.answer;
  };
}

function reason(ui, { right, why }) {
  const element = make("div");
  const verdict = make("strong", { textContent: `${right ? "✓" : "✗"} ${ui.t(right ? "right" : "wrong")}` });
  element.append(verdict, make("div", { innerHTML: why }));
  return element;
}
