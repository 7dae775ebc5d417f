/** What a crossing waits for: objects by kind, namespace and name, each with the reason. One form for every output. */
import { foreignText } from "@longshore/runtime";

/** An object that is waited for. */
export interface WaitSubject {
  /** The object's kind, e.g. `Pod`; `API server` where it is the server itself. */
  readonly kind: string;
  readonly namespace?: string;
  /** Empty where there is only one of the kind. */
  readonly name: string;
  /** What is missing, with the field that shows it. */
  readonly why: string;
}

/** All that a step waits for at one time. */
export interface Wait {
  readonly subjects: readonly WaitSubject[];
  /** How many more there are, where there are too many to name. */
  readonly omitted?: number;
}

/** One report of a wait. */
export interface WaitReport {
  readonly wait: Wait;
  /** How long these objects have been waited for, in milliseconds. */
  readonly waitedMs: number;
  /** How long the step has left before it is given up, in milliseconds. */
  readonly leftMs: number;
}

/** Most characters of a reason in a sentence: it contains text from drivers and servers. */
const whyMax = 500;
/** Most objects that are named in a sentence. */
const namedMax = 3;

/** Most objects that are kept of a wait: it is in a journal, which a ConfigMap holds. */
const keptMax = 100;

/** The wait with no more objects than a journal can hold. */
export function boundedWait(wait: Wait): Wait {
  const { subjects, omitted = 0 } = wait;
  if (subjects.length <= keptMax) return wait;
  return { subjects: subjects.slice(0, keptMax), omitted: omitted + subjects.length - keptMax };
}

/** The wait in one line: `Pod default/w-0 (…); Pod default/w-1 (…)`. */
export function waitWords({ subjects, omitted: left = 0 }: Wait): string {
  const words = subjects
    .slice(0, namedMax)
    .map((subject) => `${subjectName(subject)} (${foreignText(subject.why, whyMax)})`);
  const omitted = left + subjects.length - words.length;
  return omitted > 0 ? `${words.join("; ")}; and ${omitted} more` : words.join("; ");
}

/** `Pod default/w-0`, `Node n1`, `API server`. */
export function subjectName({ kind, namespace, name }: WaitSubject): string {
  const path = namespace === undefined ? name : `${namespace}/${name}`;
  return path === "" ? kind : `${kind} ${path}`;
}
