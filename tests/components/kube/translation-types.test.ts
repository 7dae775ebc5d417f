/** The API's own types fit the minimal ones of the translation library: what kube reads can be translated as it is. */
import type { PersistentVolume, StorageClass, Stored, Volume } from "@longshore/kube";
import type * as translation from "@longshore/translation";
import { expectTypeOf, test } from "vitest";

test("volumes and classes are assignable to the translation's types", () => {
  expectTypeOf<PersistentVolume>().toExtend<translation.PersistentVolume>();
  expectTypeOf<Stored<PersistentVolume>>().toExtend<translation.PersistentVolume>();
  expectTypeOf<StorageClass>().toExtend<translation.StorageClass>();
  expectTypeOf<Volume>().toExtend<translation.Volume>();
});
