/** Reads the workflows as GitHub does: by its parser, with its schema and the order of the jobs. */

import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from '@actions/workflow-parser';
import { projectFiles, readDocument } from '../support/documents.ts';

export async function workflowProblems(): Promise<string[]> {
  const paths = (await projectFiles()).filter((path) => path.startsWith('.github/workflows/'));
  const problems = paths.map(async (path) => {
    const { text } = await readDocument(path);
    const { context, value } = parseWorkflow({ name: path, content: text }, new NoOperationTraceWriter());
    if (!value) return context.errors.getErrors().map(({ message }) => message);
    const { errors = [] } = await convertWorkflowTemplate(context, value);
    return errors.map(({ Message }) => Message);
  });
  return (await Promise.all(problems)).flat();
}
