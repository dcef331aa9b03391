# One bounded cycle: read the prompt, do the work, say how it ended. Files go below /sandbox or /tmp only.
prompt=$(cat)
printf '%s\n' "$prompt"
printf '%s\n' "$prompt" > /sandbox/hello.txt
printf '%s %s\n' OPENSHELL_AGENT_RESULT \
  '{"status":"complete","reason":"greeted","notes":"The prompt was read and is kept in /sandbox/hello.txt."}'
