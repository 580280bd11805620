/** Every text that the gateway itself sends to a client, in English and in Swahili. */

export interface Message {
  readonly en: string;
  readonly sw: string;
}
export type Language = keyof Message;

export const messages = {
  originNotAllowed: {
    en: 'Requests from this origin are not allowed.',
    sw: 'Maombi kutoka chanzo hiki hayaruhusiwi.',
  },
  notFound: {
    en: 'There is nothing at this address.',
    sw: 'Hakuna kitu kwenye anwani hii.',
  },
  methodNotAllowed: {
    en: 'This address does not support the request method.',
    sw: 'Anwani hii haikubali mbinu ya ombi hili.',
  },
  notSignedIn: {
    en: 'You are not signed in.',
    sw: 'Hujaingia kwenye akaunti.',
  },
  sessionEnded: {
    en: 'Your session has ended. Please sign in again.',
    sw: 'Kipindi chako kimeisha. Tafadhali ingia tena.',
  },
  sessionCookieTwice: {
    en: 'Your browser sends a session cookie twice. Please delete the cookies of this site and sign in again.',
    sw: 'Kivinjari chako kinatuma kidakuzi cha kipindi mara mbili. Tafadhali futa vidakuzi vya tovuti hii kisha uingie tena.',
  },
  bodyTooLarge: {
    en: 'The request body must not be larger than 2 MB.',
    sw: 'Mwili wa ombi usizidi MB 2.',
  },
  bodyNotAllowed: {
    en: 'A GET or HEAD request must not have a body.',
    sw: 'Ombi la GET au HEAD halipaswi kuwa na mwili.',
  },
  bodyIncomplete: {
    en: 'The request body did not arrive completely.',
    sw: 'Mwili wa ombi haukufika wote.',
  },
  bodyTooSlow: {
    en: 'The request body arrived too slowly.',
    sw: 'Mwili wa ombi ulifika polepole mno.',
  },
  bodyMalformed: {
    en: 'The request body must be valid JSON.',
    sw: 'Mwili wa ombi lazima uwe JSON sahihi.',
  },
  bodyTooComplex: {
    en: 'The request body has too many values or is nested too deeply.',
    sw: 'Mwili wa ombi una thamani nyingi mno au viwango vingi mno.',
  },
  bodyNotAnObject: {
    en: 'The request body must be a JSON object, sent as application/json.',
    sw: 'Mwili wa ombi lazima uwe kitu cha JSON, kilichotumwa kama application/json.',
  },
  codeInvalid: {
    en: 'code must be a string of 1 to 4096 characters.',
    sw: 'code lazima iwe maandishi yenye vibambo 1 hadi 4096.',
  },
  codeVerifierInvalid: {
    en: 'code_verifier must be a string of 43 to 4096 characters.',
    sw: 'code_verifier lazima iwe maandishi yenye vibambo 43 hadi 4096.',
  },
  modelInvalid: {
    en: 'model must be a string of 1 to 120 characters.',
    sw: 'model lazima iwe maandishi yenye vibambo 1 hadi 120.',
  },
  promptInvalid: {
    en: 'prompt must be a string of 1 to 4100 characters.',
    sw: 'prompt lazima iwe maandishi yenye vibambo 1 hadi 4100.',
  },
  musicLengthInvalid: {
    en: 'music_length_ms must be a whole number from 3000 to 600000.',
    sw: 'music_length_ms lazima iwe namba kamili kutoka 3000 hadi 600000.',
  },
  requestInvalid: {
    en: 'The request is not valid.',
    sw: 'Ombi si sahihi.',
  },
  signInNotSetUp: {
    en: 'Signing in is not set up for this origin.',
    sw: 'Kuingia hakujawekwa kwa chanzo hiki.',
  },
  signInRefused: {
    en: 'The identity provider did not accept the sign-in.',
    sw: 'Mtoa utambulisho hakukubali kuingia huku.',
  },
  clientRefused: {
    en: 'Signing in does not work at the moment: the identity provider does not accept this service.',
    sw: 'Kuingia hakufanyi kazi kwa sasa: mtoa utambulisho hakubali huduma hii.',
  },
  identityProviderFailed: {
    en: 'The identity provider has a problem. Please try again later.',
    sw: 'Mtoa utambulisho ana tatizo. Tafadhali jaribu tena baadaye.',
  },
  signInFailed: {
    en: 'The music service did not complete the sign-in.',
    sw: 'Huduma ya muziki haikukamilisha kuingia kwako.',
  },
  tokensTooLarge: {
    en: 'The session is too large to be kept in a cookie.',
    sw: 'Kipindi ni kikubwa mno; hakiwezi kuhifadhiwa kwenye kidakuzi.',
  },
  identityProviderUnreachable: {
    en: 'The identity provider cannot be reached right now.',
    sw: 'Mtoa utambulisho hapatikani kwa sasa.',
  },
  identityProviderTimeout: {
    en: 'The identity provider took too long to answer.',
    sw: 'Mtoa utambulisho alichelewa mno kujibu.',
  },
  identityProviderInvalid: {
    en: 'The identity provider gave an invalid answer.',
    sw: 'Mtoa utambulisho alitoa jibu lisilo sahihi.',
  },
  upstreamUnreachable: {
    en: 'The music service cannot be reached right now.',
    sw: 'Huduma ya muziki haipatikani kwa sasa.',
  },
  upstreamTimeout: {
    en: 'The music service took too long to answer.',
    sw: 'Huduma ya muziki ilichelewa mno kujibu.',
  },
  upstreamInvalid: {
    en: 'The music service gave an invalid answer.',
    sw: 'Huduma ya muziki ilitoa jibu lisilo sahihi.',
  },
  generationFailed: {
    en: 'The music could not be generated.',
    sw: 'Muziki haukuweza kutengenezwa.',
  },
  generationNotStreamed: {
    en: 'The music is being generated, but it cannot be played while it arrives. You will find it in your library.',
    sw: 'Muziki unatengenezwa, lakini hauwezi kuchezwa unapowasili. Utaupata kwenye maktaba yako.',
  },
  generationTimeout: {
    en: 'The music service took too long to answer. The generation may have completed: check your account activity before you try again.',
    sw: 'Huduma ya muziki ilichelewa mno kujibu. Huenda muziki umekamilika: angalia shughuli za akaunti yako kabla ya kujaribu tena.',
  },
  sessionBusy: {
    en: 'Your session has too many requests in flight. Please wait until one has finished.',
    sw: 'Kipindi chako kina maombi mengi mno yanayoendelea. Tafadhali subiri hadi moja likamilike.',
  },
  overloaded: {
    en: 'Too many requests are under way. Please try again in a moment.',
    sw: 'Maombi mengi mno yanaendelea. Tafadhali jaribu tena baada ya muda mfupi.',
  },
  internalError: {
    en: 'Something went wrong in the gateway.',
    sw: 'Hitilafu imetokea kwenye lango.',
  },
} as const satisfies Record<string, Message>;

export type MessageKey = keyof typeof messages;

const keys = new Map<Message, string>(Object.entries(messages).map(([key, message]) => [message, key]));

/** The name of a text, which identifies it in logs and metrics. */
export function messageKey(message: Message): string {
  return keys.get(message) ?? 'unknown';
}

/** More than any browser sends. A long list would take too long to parse. */
const MAX_LANGUAGE_CHARACTERS = 200;

/**
 * The language of the response: by the weights of an `Accept-Language` header, then by its order, else English.
 *
 * @see RFC 9110 section 12.5.4
 */
export function preferredLanguage(acceptLanguage: string | null): Language {
  let preferred: Language = 'en';
  let most = 0;
  for (const range of acceptLanguage?.slice(0, MAX_LANGUAGE_CHARACTERS).split(',') ?? []) {
    const [tag = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const language = tag.split('-')[0];
    const weight = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1) || 0;
    if ((language === 'en' || language === 'sw') && weight > most) {
      preferred = language;
      most = weight;
    }
  }
  return preferred;
}

export function isMessageKey(key: unknown): key is MessageKey {
  return typeof key === 'string' && Object.hasOwn(messages, key);
}
