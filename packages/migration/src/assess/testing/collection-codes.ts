/** Codes of findings that come with what is read and how, not with an object in it: their cases are in `collection-codes.test.ts`. */
export const collectionCodes: readonly string[] = ["LS1001", "LS1002", "LS1006", "LS1202"];
