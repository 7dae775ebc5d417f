/** Objects and changes as bytes: what the frames of the store's files hold. */
import type { StoredRecord } from "../persistence.ts";

/** Stands for the length of an object that is not there. */
const removed = 0xffffffff;

/** The record as bytes: the lengths of its two parts, what it is about, and the object. */
export function encodeRecord(
  record: Omit<StoredRecord, "json">,
  json: string | Buffer | readonly Buffer[] | undefined,
): Buffer[] {
  const { revision, resource, namespace, name } = record;
  const about = Buffer.from(JSON.stringify([revision, resource, namespace, name]));
  const parts =
    typeof json === "string" ? [Buffer.from(json)] : Buffer.isBuffer(json) ? [json] : (json ?? []);
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32LE(about.length, 0);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  lengths.writeUInt32LE(json === undefined ? removed : length, 4);
  return [lengths, about, ...parts];
}

/** The records of a frame. The objects share the memory of `content`. */
export function decodeRecords(content: Buffer): StoredRecord[] {
  const records: StoredRecord[] = [];
  for (let at = 0; at < content.length; ) {
    const aboutEnd = at + 8 + content.readUInt32LE(at);
    const length = content.readUInt32LE(at + 4);
    const end = length === removed ? aboutEnd : aboutEnd + length;
    const about = JSON.parse(content.toString("utf8", at + 8, aboutEnd)) as [number, string, string, string];
    const [revision, resource, namespace, name] = about;
    const record = { revision, resource, namespace, name };
    records.push(length === removed ? record : { ...record, json: content.subarray(aboutEnd, end) });
    at = end;
  }
  return records;
}
