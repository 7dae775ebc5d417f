export { type AttacherOptions, startAttacher } from "./attacher.ts";
