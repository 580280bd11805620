/** Tells a history in lines, for whom a failure is to be explained. */

import type { History, Request, Send } from './history.ts';
import type { Moment } from './virtual-time.ts';

type Line = readonly [moment: Moment | undefined, text: string];

export function storyOf(history: History): string {
  const lines = linesOf(history).flatMap(([moment, text]) => (moment ? [{ ...moment, text }] : []));
  const start = Math.min(...lines.map(({ at }) => at));
  return lines
    .toSorted((one, other) => one.order - other.order)
    .map(({ at, text }) => `${String(at - start).padStart(7)} ms  ${text.trimEnd()}`)
    .join('\n');
}

function linesOf(history: History): Line[] {
  return [
    ...history.requests.flatMap(linesOfRequest),
    ...history.sends.flatMap(linesOfSend),
    ...history.presentations.map(
      ({ token, instance, moment }): Line => [moment, `${token.text} is presented at ${instance}`],
    ),
    ...history.signOuts.flatMap(({ token, instance, began, ended, isOver }): Line[] => [
      [began, `the sign-out of ${token.text} at ${instance} begins`],
      [isOver ? ended : undefined, `the sign-out of ${token.text} at ${instance} is over`],
    ]),
    ...history.upstreamSignOuts.map(
      ({ text, instance, sent }): Line => [sent, `${instance} signs ${text} out at the upstream`],
    ),
    ...history.signIns.flatMap(({ token, instance, isAgain, ended }): Line[] => [
      [token.issued, `a sign-in issues ${token.text}${isAgain ? ' again' : ''}`],
      [ended, `the sign-in with ${token.text} at ${instance} is over`],
    ]),
    ...history.outages.flatMap(({ instance, began, ended }): Line[] => [
      [began, `${instance} has no Redis`],
      [ended, `${instance} has Redis again`],
    ]),
    ...history.crashes.map(({ instance, moment }): Line => [moment, `${instance} crashes`]),
    ...history.forged.map(({ token, moment }): Line => [moment, `a claim of ${token.text} is forged`]),
  ];
}

function linesOfRequest(request: Request): Line[] {
  const { token, instance, arrived, asked, ended, outcome, pair, leaves, given, trace } = request;
  const name = `the request with ${token.text} at ${instance}`;
  const counted = trace.refreshTokenReused ? ', counted as a reuse' : '';
  return [
    [arrived, `${name} arrives`],
    [asked && asked.at > arrived.at ? asked : undefined, `${name} asks for a refresh`],
    [ended, `${name}: ${outcome} ${pair?.text ?? ''}${counted}`],
    [leaves, `${name} responds: ${given?.text ?? 'no cookies'}`],
  ];
}

function linesOfSend({ token, instance, sent, arrived, verdict, successor, ended, outcome }: Send): Line[] {
  return [
    [sent, `${instance} sends ${token.text} to the upstream`],
    [arrived, `the upstream: ${token.text} ${verdict} ${successor?.text ?? ''}`],
    [ended, `${instance} has the outcome for ${token.text}: ${outcome}`],
  ];
}
