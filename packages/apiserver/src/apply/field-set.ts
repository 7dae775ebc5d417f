/**
 * Sets of paths to fields, as trees: a path may be a member of the set, and paths that go on from it may be as well.
 * The laws of sets hold for members; a member says nothing of what is below it. Sets never change.
 *
 * FieldsV1 is the same as JSON: `{}` for a member with nothing below it, `".": {}` for one that has something.
 */
import type { FieldType } from "../api/field-type.ts";
import { spendTime } from "../api/work-time.ts";
import { compareElements, memberName, type PathElement, readElement, shownElement } from "./path-element.ts";
import { childType, fieldOf } from "./type-steps.ts";

/** A set of paths: whether the path that leads here is one, and those that go on. */
export interface FieldSet {
  readonly member: boolean;
  readonly children: ReadonlyMap<PathElement, FieldSet>;
}

type Children = Map<PathElement, FieldSet>;

const noChildren: ReadonlyMap<PathElement, FieldSet> = new Map();

/** The set of nothing. */
export const emptySet: FieldSet = Object.freeze({ member: false, children: noChildren });

/** The path that leads here, and nothing below. */
export const leaf: FieldSet = Object.freeze({ member: true, children: noChildren });

/** True for the set of nothing; every other set has a member somewhere. */
export function isEmpty(set: FieldSet): boolean {
  return !set.member && set.children.size === 0;
}

/** The set of these parts; one of the constants where there is nothing to say. */
export function nodeOf(member: boolean, children: ReadonlyMap<PathElement, FieldSet>): FieldSet {
  if (children.size === 0) return member ? leaf : emptySet;
  return { member, children };
}

/** The set of these paths. */
export function setOf(...paths: readonly (readonly PathElement[])[]): FieldSet {
  return paths.reduce<FieldSet>((set, path) => union(set, pathSet(path)), emptySet);
}

function pathSet([first, ...rest]: readonly PathElement[]): FieldSet {
  return first === undefined ? leaf : nodeOf(false, new Map([[first, pathSet(rest)]]));
}

/** What is in one of them. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmpty(b)) return a;
  if (isEmpty(a)) return b;
  let children: Children | undefined;
  for (const [element, theirs] of b.children) {
    spendTime();
    const ours = a.children.get(element);
    const both = ours === undefined ? theirs : union(ours, theirs);
    if (both === ours) continue;
    children ??= new Map(a.children);
    children.set(element, both);
  }
  if (children === undefined && a.member === (a.member || b.member)) return a;
  return nodeOf(a.member || b.member, children ?? a.children);
}

/** What is in any of them. Put together two by two: one after the other would copy the growing sum each time. */
export function unionOf(sets: readonly FieldSet[]): FieldSet {
  if (sets.length <= 2) return union(sets[0] ?? emptySet, sets[1] ?? emptySet);
  const half = sets.length >> 1;
  return union(unionOf(sets.slice(0, half)), unionOf(sets.slice(half)));
}

const pathCounts = new WeakMap<FieldSet, number>();

/** How many parts of paths the set has; parts that sets share are counted in each. */
export function pathCount(set: FieldSet): number {
  if (set.children.size === 0) return 0;
  let count = pathCounts.get(set);
  if (count === undefined) {
    count = set.children.size;
    spendTime(count);
    for (const child of set.children.values()) count += pathCount(child);
    pathCounts.set(set, count);
  }
  return count;
}

/** What is in both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  const children: Children = new Map();
  for (const [element, ours] of a.children) {
    spendTime();
    const theirs = b.children.get(element);
    if (theirs !== undefined) put(children, element, intersection(ours, theirs));
  }
  return nodeOf(a.member && b.member, children);
}

/** What is in the first only. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return emptySet;
  if (isEmpty(b)) return a;
  let changed = a.member && b.member;
  const children: Children = new Map();
  for (const [element, ours] of a.children) {
    spendTime();
    const theirs = b.children.get(element);
    const left = theirs === undefined ? ours : difference(ours, theirs);
    changed ||= left !== ours;
    put(children, element, left);
  }
  return changed ? nodeOf(a.member && !b.member, children) : a;
}

/** What is in the first only, and not below a member of the second either. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  if (b.member) return emptySet;
  if (isEmpty(b)) return a;
  const children: Children = new Map();
  for (const [element, ours] of a.children) {
    spendTime();
    const theirs = b.children.get(element);
    put(children, element, theirs === undefined ? ours : recursiveDifference(ours, theirs));
  }
  return nodeOf(a.member, children);
}

/** The members with nothing below them. */
export function leaves(set: FieldSet): FieldSet {
  if (set.children.size === 0) return set;
  const children: Children = new Map();
  spendTime(set.children.size);
  for (const [element, child] of set.children) put(children, element, leaves(child));
  return nodeOf(false, children);
}

/** True when both hold the same paths. */
export function sameSet(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  if (a.member !== b.member || a.children.size !== b.children.size) return false;
  for (const [element, ours] of a.children) {
    spendTime();
    const theirs = b.children.get(element);
    if (theirs === undefined || !sameSet(ours, theirs)) return false;
  }
  return true;
}

function put(children: Children, element: PathElement, set: FieldSet): void {
  if (!isEmpty(set)) children.set(element, set);
}

/**
 * The set with every named member of a struct that leads to a path of it: a struct goes with what was in it, where
 * members of maps and items of lists stay unless they are in the set themselves.
 */
export function withNamedFields(set: FieldSet, type: FieldType): FieldSet {
  return { member: set.member, children: namedChildren(set, type) };
}

function namedChildren(set: FieldSet, type: FieldType): Children {
  const children: Children = new Map();
  for (const [element, child] of set.children) {
    spendTime();
    const name = memberName(element);
    const isNamed = name !== undefined && fieldOf(type, name) !== undefined;
    const below = child.children.size === 0 ? noChildren : namedChildren(child, childType(type, element));
    children.set(element, nodeOf(child.member || isNamed, below));
  }
  return children;
}

/** Every path of the set as messages show it, members before what is below them. */
export function shownPaths(set: FieldSet): readonly string[] {
  const found: string[] = [];
  const walk = (node: FieldSet, at: string) => {
    spendTime(1 + node.children.size);
    const sorted = [...node.children].sort(([a], [b]) => compareElements(a, b));
    for (const [element, child] of sorted) if (child.member) found.push(at + shownElement(element));
    for (const [element, child] of sorted) walk(child, at + shownElement(element));
  };
  walk(set, "");
  return found;
}

/** The set as JSON. */
export type FieldsV1 = { readonly [element: PathElement]: FieldsV1 };

const nothingBelow: FieldsV1 = Object.freeze({});

/** The set as FieldsV1, its parts in their order. */
export function toFieldsV1(set: FieldSet): FieldsV1 {
  if (set.children.size === 0) return nothingBelow;
  spendTime(set.children.size);
  const result: Record<string, FieldsV1> = {};
  if (set.member) result["."] = nothingBelow;
  for (const element of [...set.children.keys()].sort(compareElements)) {
    result[element] = toFieldsV1(set.children.get(element) as FieldSet);
  }
  return result;
}

/** FieldsV1 that is none. */
export class FieldsError extends Error {
  override readonly name = "FieldsError";
}

const read = new WeakMap<object, FieldSet>();

/** The set that FieldsV1 says. @throws FieldsError */
export function fromFieldsV1(fields: unknown): FieldSet {
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    throw new FieldsError("the fields are not an object");
  }
  const known = read.get(fields);
  if (known !== undefined) return known;
  const { children } = readNode(fields as FieldsV1);
  const set = nodeOf(false, children);
  // What is not frozen may still change.
  if (Object.isFrozen(fields)) read.set(fields, set);
  return set;
}

function readNode(fields: FieldsV1): FieldSet {
  const children: Children = new Map();
  let member = false;
  let count = 0;
  for (const [text, below] of Object.entries(fields)) {
    count++;
    spendTime();
    if (text === ".") {
      member = true;
      continue;
    }
    const element = readElement(text);
    if (element === undefined || typeof below !== "object" || below === null || Array.isArray(below)) {
      throw new FieldsError(`${JSON.stringify(text)} is not a path element`);
    }
    children.set(element, readNode(below));
  }
  return count === 0 ? leaf : nodeOf(member, children);
}
