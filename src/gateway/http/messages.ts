/** Every text that the gateway itself sends to a client, in English and in Swahili. */

const en = {
  originNotAllowed: 'Requests from this origin are not allowed.',
  originMissing:
    "The request has no Origin header. Send an allowed one, as in curl -H 'Origin: https://studio.example'; for a page on the gateway's own origin, set SAME_ORIGIN=true.",
  notFound: 'There is nothing at this address.',
  methodNotAllowed: 'This address does not support the request method.',
  notSignedIn: 'You are not signed in.',
  sessionEnded: 'Your session has ended. Please sign in again.',
  sessionCookieTwice:
    'Your browser sends a session cookie twice. Please delete the cookies of this site and sign in again.',
  bodyTooLarge: 'The request body must not be larger than 2 MB.',
  uploadTooLarge: 'The file is larger than this service accepts.',
  uploadNotRepeated: 'The session was renewed. Send the file again.',
  bodyNotAllowed: 'A GET or HEAD request must not have a body.',
  bodyIncomplete: 'The request body did not arrive completely.',
  bodyTooSlow: 'The request body arrived too slowly.',
  bodyMalformed: 'The request body must be valid JSON.',
  bodyTooComplex: 'The request body has too many values or is nested too deeply.',
  bodyNotAnObject: 'The request body must be a JSON object, sent as application/json.',
  codeInvalid: 'code must be a string of 1 to 4096 characters.',
  codeVerifierInvalid: 'code_verifier must be a string of 43 to 4096 characters.',
  modelInvalid: 'model must be a string of 1 to 120 characters.',
  promptInvalid: 'prompt must be a string of 1 to 4100 characters.',
  musicLengthInvalid: 'music_length_ms must be a whole number from 3000 to 600000.',
  requestInvalid: 'The request is not valid.',
  signInNotSetUp: 'Signing in is not set up for this origin.',
  signInRefused: 'The identity provider did not accept the sign-in.',
  clientRefused:
    'Signing in does not work at the moment: the identity provider does not accept this service.',
  identityProviderFailed: 'The identity provider has a problem. Please try again later.',
  signInFailed: 'The music service did not complete the sign-in.',
  tokensTooLarge: 'The session is too large to be kept in a cookie.',
  identityProviderUnreachable: 'The identity provider cannot be reached right now.',
  identityProviderTimeout: 'The identity provider took too long to respond.',
  identityProviderInvalid: 'The identity provider gave an invalid response.',
  upstreamUnreachable: 'The music service cannot be reached right now.',
  upstreamTimeout: 'The music service took too long to respond.',
  upstreamInvalid: 'The music service gave an invalid response.',
  generationFailed: 'The music could not be generated.',
  generationNotStreamed:
    'The music is being generated, but it cannot be played while it arrives. Check your account activity and your library before you try again.',
  generationTimeout:
    'The music service took too long to respond. The generation may have completed: check your account activity before you try again.',
  sessionBusy: 'Your session has too many requests in flight. Please wait until one has finished.',
  overloaded: 'Too many requests are under way. Please try again in a moment.',
  internalError: 'Something went wrong in the gateway.',
};

/** The name of a text. It is also the reason of a failure in logs and metrics. */
export type MessageKey = keyof typeof en;

const sw: Record<MessageKey, string> = {
  originNotAllowed: 'Maombi kutoka chanzo hiki hayaruhusiwi.',
  originMissing:
    "Ombi halina kichwa cha Origin. Tuma chanzo kinachoruhusiwa, kwa mfano curl -H 'Origin: https://studio.example'; kwa ukurasa ulio kwenye chanzo cha lango lenyewe, weka SAME_ORIGIN=true.",
  notFound: 'Hakuna kitu kwenye anwani hii.',
  methodNotAllowed: 'Anwani hii haikubali mbinu ya ombi hili.',
  notSignedIn: 'Hujaingia kwenye akaunti.',
  sessionEnded: 'Kipindi chako kimeisha. Tafadhali ingia tena.',
  sessionCookieTwice:
    'Kivinjari chako kinatuma kidakuzi cha kipindi mara mbili. Tafadhali futa vidakuzi vya tovuti hii kisha uingie tena.',
  bodyTooLarge: 'Mwili wa ombi usizidi MB 2.',
  uploadTooLarge: 'Faili ni kubwa kuliko huduma hii inavyokubali.',
  uploadNotRepeated: 'Kipindi kimeanzishwa upya. Tuma faili tena.',
  bodyNotAllowed: 'Ombi la GET au HEAD halipaswi kuwa na mwili.',
  bodyIncomplete: 'Mwili wa ombi haukufika wote.',
  bodyTooSlow: 'Mwili wa ombi ulifika polepole mno.',
  bodyMalformed: 'Mwili wa ombi lazima uwe JSON sahihi.',
  bodyTooComplex: 'Mwili wa ombi una thamani nyingi mno au viwango vingi mno.',
  bodyNotAnObject: 'Mwili wa ombi lazima uwe kitu cha JSON, kilichotumwa kama application/json.',
  codeInvalid: 'code lazima iwe maandishi yenye vibambo 1 hadi 4096.',
  codeVerifierInvalid: 'code_verifier lazima iwe maandishi yenye vibambo 43 hadi 4096.',
  modelInvalid: 'model lazima iwe maandishi yenye vibambo 1 hadi 120.',
  promptInvalid: 'prompt lazima iwe maandishi yenye vibambo 1 hadi 4100.',
  musicLengthInvalid: 'music_length_ms lazima iwe namba kamili kutoka 3000 hadi 600000.',
  requestInvalid: 'Ombi si sahihi.',
  signInNotSetUp: 'Kuingia hakujawekwa kwa chanzo hiki.',
  signInRefused: 'Mtoa utambulisho hakukubali kuingia huku.',
  clientRefused: 'Kuingia hakufanyi kazi kwa sasa: mtoa utambulisho hakubali huduma hii.',
  identityProviderFailed: 'Mtoa utambulisho ana tatizo. Tafadhali jaribu tena baadaye.',
  signInFailed: 'Huduma ya muziki haikukamilisha kuingia kwako.',
  tokensTooLarge: 'Kipindi ni kikubwa mno; hakiwezi kuhifadhiwa kwenye kidakuzi.',
  identityProviderUnreachable: 'Mtoa utambulisho hapatikani kwa sasa.',
  identityProviderTimeout: 'Mtoa utambulisho alichelewa mno kujibu.',
  identityProviderInvalid: 'Mtoa utambulisho alitoa jibu lisilo sahihi.',
  upstreamUnreachable: 'Huduma ya muziki haipatikani kwa sasa.',
  upstreamTimeout: 'Huduma ya muziki ilichelewa mno kujibu.',
  upstreamInvalid: 'Huduma ya muziki ilitoa jibu lisilo sahihi.',
  generationFailed: 'Muziki haukuweza kutengenezwa.',
  generationNotStreamed:
    'Muziki unatengenezwa, lakini hauwezi kuchezwa unapowasili. Angalia shughuli za akaunti yako kabla ya kujaribu tena.',
  generationTimeout:
    'Huduma ya muziki ilichelewa mno kujibu. Huenda muziki umekamilika: angalia shughuli za akaunti yako kabla ya kujaribu tena.',
  sessionBusy: 'Kipindi chako kina maombi mengi mno yanayoendelea. Tafadhali subiri hadi moja likamilike.',
  overloaded: 'Maombi mengi mno yanaendelea. Tafadhali jaribu tena baada ya muda mfupi.',
  internalError: 'Hitilafu imetokea kwenye lango.',
};

export const messages = { en, sw };
export type Language = keyof typeof messages;

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
  return typeof key === 'string' && Object.hasOwn(en, key);
}
