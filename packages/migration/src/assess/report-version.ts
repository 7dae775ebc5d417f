/** The version of the report's form: a field that is added keeps it, one that changes or goes raises it. */
export const reportVersion = "longshore.dev/assessment/v1";
