/**
 * Parts that many objects of a kind have in common, kept once: volumes of one class have the same access modes, capacity,
 * finalizers and topology, pods of one set the same labels, owner and tolerations. An object that is read for a cache
 * drops its own copy of such a part right after parsing, while that is cheap. A cache of volumes takes half the memory.
 *
 *     spec.capacity       recent: {"storage":"100Gi"}, {"storage":"8Gi"}
 *     spec.nodeAffinity   recent: {…us-east-1a…}, {…us-east-1b…}
 *
 * Invariants
 *  - An object equals what it was.
 *  - What is remembered is bounded: so many values a member, so many members, whatever the objects hold.
 *  - Where values are never the same, as references to one's own claim are, looking costs next to nothing.
 */

/** Values that are remembered of a member; the topology of a volume has as many as there are zones. */
const VALUES_MAX = 6;
/** The last of them make room, in turn, for those that come. */
const VALUES_IN_TURN = 2;
/** Members that are looked at; a schema has fewer, but what is under `spec` need not have one. */
const MEMBERS_MAX = 64;
/** A member whose values were not found this much more often than found is skipped … */
const SCORE_MAX = 16;
/** … and tried again after this many skipped objects. */
const PASSED_BY = 64;
const SCORE_TO_PROVE = 4;

type Json = Record<string, unknown>;
type Parts = { metadata?: unknown; spec?: unknown; status?: unknown };

/** The recent values of one member. */
class RecentValues {
  readonly #values: unknown[] = [];
  #turn = 0;
  #score = SCORE_MAX / 2;
  #passedBy = 0;

  /** An equal value that was seen before, or this one. */
  share(value: object): unknown {
    if (this.#score <= 0) {
      if (this.#passedBy++ < PASSED_BY) return value;
      this.#passedBy = 0;
      this.#score = SCORE_TO_PROVE;
    }
    const values = this.#values;
    for (let i = 0; i < values.length; i++) {
      const found = values[i];
      if (!isEqual(value, found)) continue;
      // What is found often is found first.
      if (i > 0) {
        values[i] = values[i - 1];
        values[i - 1] = found;
      }
      if (this.#score < SCORE_MAX) this.#score++;
      return found;
    }
    this.#score--;
    if (values.length < VALUES_MAX) values.push(value);
    else values[VALUES_MAX - 1 - (this.#turn++ % VALUES_IN_TURN)] = value;
    return value;
  }
}

/** What the objects of one kind have in common. */
export class SharedParts {
  readonly #recent = new Map<string, RecentValues>();
  readonly #status = new RecentValues();

  /** Replaces parts of a newly parsed object, which no other code refers to yet, by equal parts of other objects. */
  shareIn(fresh: object): void {
    const { metadata, spec, status } = fresh as Parts;
    this.#shareMembers(metadata);
    this.#shareMembers(spec);
    // That of many says no more than that they are well.
    if (typeof status !== "object" || status === null) return;
    const shared = this.#status.share(status);
    if (shared !== status) (fresh as Parts).status = shared;
    else this.#shareMembers(status);
  }

  #shareMembers(part: unknown): void {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return;
    const members = part as Json;
    for (const name in members) {
      const value = members[name];
      if (typeof value !== "object" || value === null) continue;
      const shared = this.#recentOf(name)?.share(value);
      if (shared !== undefined && shared !== value) members[name] = shared;
    }
  }

  /** Members of one name are taken together: what is equal is equal. */
  #recentOf(name: string): RecentValues | undefined {
    const present = this.#recent.get(name);
    if (present !== undefined || this.#recent.size >= MEMBERS_MAX) return present;
    const recent = new RecentValues();
    this.#recent.set(name, recent);
    return recent;
  }
}

/** Whether two JSON values are equal. */
function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!isEqual(a[i], b[i])) return false;
    return true;
  }
  if (Array.isArray(b)) return false;
  let left = 0;
  for (const name in a) {
    // A missing member reads as undefined or as a method, which no JSON value equals, except `__proto__`.
    if (name === "__proto__" || !isEqual((a as Json)[name], (b as Json)[name])) return false;
    left++;
  }
  for (const _ in b) left--;
  return left === 0;
}
