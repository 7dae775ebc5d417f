/** What stands in braces in the command of a user's own driver, for the help of the verbs that take one. */
import { driverPlaceholders } from "@longshore/local";

/** A line for each. */
export const driverPlaceholderHelp: string = Object.entries(driverPlaceholders)
  .map(([name, what]) => `  ${`{${name}}`.padEnd(14)}${what}`)
  .join("\n");
