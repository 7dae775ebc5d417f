/** How one pass is walked. */
import { expect, test } from "vitest";
import { type Actions, observeAgain, type Step, walkSteps } from "./pass.ts";
import { pureDecision } from "./pure-decision.ts";

interface Counter {
  readonly count: number;
}
type CounterStep = { readonly step: "add"; readonly by: number } | { readonly step: "stop" };

const decide = ({ count }: Counter): CounterStep => (count < 3 ? { step: "add", by: 1 } : { step: "stop" });
const pass = { key: "k", signal: new AbortController().signal };
const actions: Actions<Counter, CounterStep> = {
  add: ({ by }, { count }) => ({ observed: { count: count + by } }),
  stop: () => ({ requeueAfterMs: 7 }),
};

test("an action decides what comes next, until one ends the pass", async () => {
  const steps: Step[] = [];
  const result = await walkSteps({ observe: () => ({ count: 1 }), decide, actions }, pass, {
    onStep: (step) => steps.push(step),
  });
  expect(result).toEqual({ requeueAfterMs: 7 });
  expect(steps.map(({ step }) => step)).toEqual(["add", "add", "stop"]);
});

test("nothing observed, nothing decided", async () => {
  const never = () => {
    throw new Error("called");
  };
  const observed = { observe: (): Counter | undefined => undefined, decide: never, actions };
  expect(await walkSteps(observed, pass)).toEqual({});
});

test("observeAgain reads again, after what must come before an observation", async () => {
  const order: string[] = [];
  let count = 2;
  await walkSteps<Counter, CounterStep>(
    {
      async observe() {
        order.push(`observe ${count}`);
        return { count };
      },
      decide,
      actions: {
        ...actions,
        add() {
          count++;
          order.push("add");
          return observeAgain;
        },
      },
    },
    pass,
    {
      async beforeObservation() {
        order.push("before");
      },
    },
  );
  expect(order).toEqual(["observe 2", "add", "before", "observe 3"]);
});

test("a pass that does not end fails and names its last steps", async () => {
  const endless = {
    observe: () => ({ count: 0 }),
    decide,
    actions: { ...actions, add: () => observeAgain },
  } as const;
  await expect(walkSteps<Counter, CounterStep>(endless, pass, { stepsMax: 5 })).rejects.toThrow(
    "k: the pass does not end after 5 steps; the last: add, add, add, add",
  );
});

test("between two steps the end of the controller ends the pass", async () => {
  const stop = new AbortController();
  const stopping: Actions<Counter, CounterStep> = {
    ...actions,
    add(step, observed) {
      stop.abort(new Error("stopped"));
      return actions.add(step, observed, pass) as { observed: Counter };
    },
  };
  const steps = { observe: () => ({ count: 0 }), decide, actions: stopping };
  await expect(walkSteps(steps, { key: "k", signal: stop.signal })).rejects.toThrow("stopped");
});

test("an impure decision is found: it changes what it observes, or depends on more than that", () => {
  const changing = pureDecision((observed: { count: number }) => {
    observed.count++;
    return { step: "stop" };
  });
  expect(() => changing({ count: 0 })).toThrow(TypeError);
  let calls = 0;
  const remembering = pureDecision(() => ({ step: `call ${calls++}` }));
  expect(() => remembering({})).toThrow("the decision is not pure: call 0, then call 1");
  expect(pureDecision(decide)({ count: 3 })).toEqual({ step: "stop" });
});
