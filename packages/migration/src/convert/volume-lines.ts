/**
 * The short way for JSON lines that hold in-tree PersistentVolumes: bytes in, bytes out.
 *
 * A line is scanned, not parsed. Only the members that a translation reads become objects; the volume made of these
 * alone is translated, and what changed is put in the place of what was there. All other bytes are copied.
 *
 * Invariants
 *  - The result equals that of the long way (parse, translate, write), or the line is passed by. Whatever is unusual
 *    is passed by: other kinds, two sources, a volume that cannot be translated, which the long way reports.
 *  - Nothing of a line is written before all of it has been translated.
 */

import { checkInTreePV, type PersistentVolume, translateInTreePVToCSI } from "@longshore/translation";
import { AffinityMemo, writtenAffinity } from "./affinity-memo.ts";
import type { KubeObject } from "./kube-object.ts";
import type { OutputBuffer } from "./manifest-output.ts";
import { OPEN_BRACE } from "./member-scanner.ts";
import { type Edit, specEdits } from "./splice-json.ts";
import { sourceNames, volumeScanner } from "./volume-scanner.ts";

const KIND = volumeScanner.slotOf("kind");
const METADATA = volumeScanner.slotOf("metadata");
const NAME = volumeScanner.slotOf("metadata.name");
const ANNOTATIONS = volumeScanner.slotOf("metadata.annotations");
const LABELS = volumeScanner.slotOf("metadata.labels");
const SPEC = volumeScanner.slotOf("spec");
const CSI = volumeScanner.slotOf("spec.csi");
const AFFINITY = volumeScanner.slotOf("spec.nodeAffinity");
const MODES = volumeScanner.slotOf("spec.accessModes");
const NAMESPACE = volumeScanner.slotOf("spec.claimRef.namespace");
const sourceSlots = sourceNames.map((source) => volumeScanner.slotOf(`spec.${source}`));

const LINE_FEED = 10;

/** Translates volumes, a line each, to CSI. */
export class VolumeLines {
  #lines = 0;
  #converted = 0;
  readonly #out: OutputBuffer;
  readonly #affinities = new AffinityMemo();

  constructor(out: OutputBuffer) {
    this.#out = out;
  }

  /** How many lines were taken since the last call, each of them an object, and how many of these were changed. */
  takeCounts(): { readonly lines: number; readonly converted: number } {
    const counts = { lines: this.#lines, converted: this.#converted };
    this.#lines = 0;
    this.#converted = 0;
    return counts;
  }

  /**
   * Converts lines from `start` on, up to the first that it passes by. Returns where that line begins, or `start` where
   * the bytes, which are text in this encoding, do not end with a line feed.
   */
  convert(bytes: Buffer, start: number, encoding: "latin1" | "utf8"): number {
    if (bytes[bytes.length - 1] !== LINE_FEED) return start;
    const line = new ScannedLine(bytes, encoding);
    let at = start;
    // Bytes that stay are copied only once some that change follow.
    let kept = start;
    while (at < bytes.length) {
      const end = volumeScanner.scan(bytes, at);
      if (end < 0 || bytes[end] !== LINE_FEED) break;
      const edits = editsOfLine(line, this.#affinities);
      if (edits === undefined) break;
      for (let i = 0; i < edits.length; i++) {
        const edit = edits[i] as Edit;
        this.#out.addBytes(bytes, kept, edit.start);
        this.#out.add(edit.replacement);
        kept = edit.end;
      }
      if (edits.length > 0) this.#converted += 1;
      this.#lines += 1;
      at = end + 1;
    }
    this.#out.addBytes(bytes, kept, at);
    return at;
  }
}

/** A line that was scanned; its members become values when they are read. */
class ScannedLine {
  readonly #bytes: Buffer;
  readonly #encoding: "latin1" | "utf8";

  constructor(bytes: Buffer, encoding: "latin1" | "utf8") {
    this.#bytes = bytes;
    this.#encoding = encoding;
  }

  isObject(slot: number): boolean {
    return volumeScanner.isFound(slot) && this.#bytes[volumeScanner.valueStartOf(slot)] === OPEN_BRACE;
  }

  /** The text of a member's value. */
  text(slot: number): string {
    return this.#bytes.toString(this.#encoding, volumeScanner.valueStartOf(slot), volumeScanner.endOf(slot));
  }

  value(slot: number): unknown {
    return volumeScanner.isFound(slot) ? JSON.parse(this.text(slot)) : undefined;
  }
}

/** The metadata of a line; most translations read little of it or nothing. */
class ScannedMetadata {
  readonly #line: ScannedLine;
  constructor(line: ScannedLine) {
    this.#line = line;
  }
  get name(): unknown {
    return this.#line.value(NAME);
  }
  get annotations(): unknown {
    return this.#line.value(ANNOTATIONS);
  }
  get labels(): unknown {
    return this.#line.value(LABELS);
  }
}

/** The claim that a line's volume is bound to. */
class ScannedClaimRef {
  readonly #line: ScannedLine;
  constructor(line: ScannedLine) {
    this.#line = line;
  }
  get namespace(): unknown {
    return this.#line.value(NAMESPACE);
  }
}

const unchanged: readonly Edit[] = [];

/** What changes in the line that was scanned last, in the order of the text; `undefined` passes it by. */
function editsOfLine(line: ScannedLine, affinities: AffinityMemo): readonly Edit[] | undefined {
  if (!volumeScanner.isFound(KIND) || !line.isObject(SPEC) || volumeScanner.isFound(CSI)) return undefined;
  if (volumeScanner.isFound(METADATA) && !line.isObject(METADATA)) return undefined;
  let index = -1;
  for (let i = 0; i < sourceSlots.length; i++) {
    const slot = sourceSlots[i] as number;
    if (!volumeScanner.isFound(slot)) continue;
    if (index >= 0 || !line.isObject(slot)) return undefined;
    index = i;
  }
  if (index < 0) return unchanged;
  const source = sourceSlots[index] as number;
  const metadata = new ScannedMetadata(line);
  const spec: { [member: string]: unknown } = { [sourceNames[index] as string]: line.value(source) };
  const affinity = volumeScanner.isFound(AFFINITY) ? affinities.parse(line.text(AFFINITY)) : undefined;
  if (affinity !== undefined) spec.nodeAffinity = affinity.value;
  if (volumeScanner.isFound(MODES)) spec.accessModes = line.value(MODES);
  if (volumeScanner.isFound(NAMESPACE)) spec.claimRef = new ScannedClaimRef(line);
  let after: PersistentVolume;
  try {
    const before = { metadata, spec } as unknown as PersistentVolume;
    checkInTreePV(before);
    after = translateInTreePVToCSI(before);
  } catch {
    // The long way meets the same error and reports it.
    return undefined;
  }
  // Only the spec is spliced: changed labels or annotations go the long way.
  if ((after.metadata as unknown) !== metadata) return undefined;
  const writeAffinity = (value: unknown) =>
    affinity === undefined ? JSON.stringify(value) : writtenAffinity(affinity, value);
  return specEdits(spec, after.spec as KubeObject, writeAffinity);
}
