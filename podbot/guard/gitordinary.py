"""The keys of git's configuration that are ordinary. Data: ``gitkeys`` has the others, and reads both.

The lists are from git's own documentation and sources, versions 2.20 to 2.55: how it shows, stores, compresses, signs
or sorts what the repository contains, and what it calls branches and remotes. A test compares them with what the
installed `git help --config` prints.
"""

from __future__ import annotations

from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

OTHERS = "*.*"
"""Any key with a subsection: other programs have their own keys there."""


def _both(names: str) -> str:
    """Keys that may have a subsection, an address or an identity, for which they apply."""
    return " ".join(f"{name} *.{name}" for name in names.split())


ORDINARY: Mapping[str, str] = {
    "add": "ignoreerrors ignore-errors interactive.usebuiltin",
    "advice": "*",
    "alias": "",
    "am": "keepcr messageid threeway",
    "apply": "ignorewhitespace whitespace",
    "attr": "",
    "author": "name email",
    "bitmappseudomerge": OTHERS,
    "blame": "blankboundary coloring date markignoredlines markunblamablelines markunblamables showemail showroot",
    # `gh` writes gh-merge-base; VS Code, Claude Code and others vscode-merge-base; its extension for pull requests
    # github-pr-owner-number; and stgit one more subsection.
    "branch": f"autosetupmerge autosetuprebase sort {OTHERS}",
    "browser": "",
    "bundle": f"heuristic mode version {OTHERS}",
    "checkout": "defaultremote guess optimizenewbranch thresholdforparallelism workers",
    "clean": "requireforce",
    "clone": "defaultremotename filtersubmodules rejectshallow",
    "color": "* *.*",
    "column": "*",
    "commit": "cleanup gpgsign status template verbose",
    "commitgraph": "changedpaths changedpathsversion generationversion maxnewfilters readchangedpaths",
    "committer": "name email",
    "completion": "commands",
    "core": "abbrev alternaterefsprefixes autocrlf bare bigfilethreshold checkroundtripencoding checkstat commentchar"
    " commentstring commitgraph compression configlocktimeout createobject deltabasecachelimit disambiguate eol"
    " excludesfile filemode filesreflocktimeout fscache fsmonitor fsmonitorhookversion fsync fsyncmethod"
    " fsyncobjectfiles hidedotfiles ignorecase ignorestat lockfilepid logallrefupdates longpaths loosecompression"
    " maxtreedepth multipackindex notesref packedgitlimit packedgitwindowsize packedrefstimeout precomposeunicode"
    " prefersymlinkrefs preloadindex protecthfs protectntfs quotepath repositoryformatversion"
    " restrictinheritedhandles safecrlf sharedrepository sparsecheckout sparsecheckoutcone splitindex symlinks"
    " trustctime unsetenvvars untrackedcache usereplacerefs warnambiguousrefs whitespace",
    "credential": _both("interactive protectprotocol sanitizeprompt usehttppath username"),
    "credentialcache": "ignoresighup",
    "credentialstore": "locktimeoutms",
    "cvsexportcommit": "",
    "cvsimport": "",
    "daemon": "",
    "diff": "*.binary *.cachetextconv *.trustexitcode *.wordregex *.xfuncname algorithm autorefreshindex color"
    " colormoved colormovedws context dirstat dstprefix guitool ignoresubmodules indentheuristic interhunkcontext"
    " mnemonicprefix noprefix orderfile relative renamelimit renames srcprefix statgraphwidth statnamewidth submodule"
    " suppressblankempty suppress-blank-empty tool trustexitcode wordregex wserrorhighlight",
    "difftool": "guidefault prompt trustexitcode *.trustexitcode",
    # worktreeConfig: `git sparse-checkout` sets it. It makes git read `config.worktree`, whose keys are findings by
    # themselves when they are written, whether git reads them already or not.
    "extensions": "compatobjectformat noop noop-v1 objectformat partialclone preciousobjects refstorage"
    " relativeworktrees submodulepathconfig worktreeconfig",
    "fastimport": "unpacklimit",
    "feature": "experimental manyfiles",
    "fetch": "all bundlecreationtoken followremotehead fsckobjects negotiationalgorithm output parallel prune prunetags"
    " recursesubmodules showforcedupdates unpacklimit writecommitgraph",
    "filter": "*.required",
    "format": "attach cc commitlistformat coverfromdescription coverletter encodeemailheaders filenamemaxlength"
    " forceinbodyfrom from headers mboxrd noprefix notes numbered outputdirectory pretty signature signaturefile"
    " signoff subjectprefix suffix thread to useautobase",
    "fsck": "",
    "fsmonitor": "allowremote announcestartup ipcthreads starttimeout",
    "gc": "aggressivedepth aggressivewindow auto autodetach autopacklimit bigpackthreshold cruftpacks"
    " launchctlplistlocktimeoutms logexpiry maxcruftsize packrefs pruneexpire reflogexpire reflogexpireunreachable"
    " repackfilter repackfilterto rerereresolved rerereunresolved worktreepruneexpire writecommitgraph *.reflogexpire"
    " *.reflogexpireunreachable",
    "git-p4": "allowmissingp4users allowsubmit attemptrcscleanup branchlist branchuser client conflict detectcopies"
    " detectcopiesharder detectrenames disablep4sync disablerebase exportlabels ignoredp4labels importlabels"
    " keepemptycommits labelexportregexp labelimportregexp largefilecompressedthreshold largefileextensions"
    " largefilepush largefilesystem largefilethreshold mapuser metadatadecodingstrategy metadatafallbackencoding"
    " pathencoding preserveuser retries skipsubmitedit skipsubmiteditcheck skipusernamecheck syncfromorigin"
    " useclientspec user",
    "gitcvs": _both("allbinary commitmsgannotation dbtablenameprefix usecrlfattr"),
    "gitweb": "avatar blame category description extrabranchrefs grep highlight owner patches pickaxe remote_heads"
    " remoteheads showsizes snapshot url",
    "gpg": "format",
    "grep": "column extendedregexp fallbacktonoindex fullname linenumber patterntype threads",
    # git-gui's own, most of which are not documented
    "gui": "autoexplore blamehistoryctx commitmsgwidth copyblamethreshold diffcontext displayuntracked encoding"
    " fastcopyblame fontdiff fontui gcwarning geometry matchtrackingbranch maxfilesdisplayed maxrecentrepo"
    " newbranchtemplate pruneduringfetch recentrepo search.case search.regexp search.smartcase spellingdictionary"
    " stageuntracked tabsize textconv trustmtime usettk warndetachedcommit wmstate",
    "guitool": "*.argprompt *.confirm *.needsfile *.noconsole *.norescan *.prompt *.revprompt *.revunmerged *.title",
    "help": "autocorrect browser format",
    "hook": "jobs *.jobs *.parallel",
    "http": "maxrequestbuffer "
    + _both(
        "keepalivecount keepaliveidle keepaliveinterval lowspeedlimit lowspeedtime maxrequests maxretries maxretrytime"
        " minsessions noepsv postbuffer proxysslcertpasswordprotected retryafter sslbackend sslcertpasswordprotected"
        " ssltry useragent version"
    ),
    "i18n": "commitencoding logoutputencoding",
    "imap": "authmethod folder pass port preformattedhtml user",
    "include": "",
    "includeif": "",
    "index": "recordendofindexentries recordoffsettable skiphash sparse threads version",
    "init": "defaultbranch defaultobjectformat defaultrefformat defaultsubmodulepathconfig",
    "instaweb": "browser port local",
    "interactive": "singlekey",
    "log": "abbrevcommit date decorate diffmerges excludedecoration follow graphcolors graphindent"
    " initialdecorationset mailmap showroot showsignature",
    "lsrefs": "unborn",
    "mailinfo": "quotedcr scissors",
    "mailmap": "blob file",
    "maintenance": "auto autodetach strategy *.auto *.batchsize *.enabled *.schedule *.splitfactor",
    "man": "viewer",
    "merge": "autostash branchdesc conflictstyle default defaulttoupstream diffstat directoryrenames ff guitool log"
    " renamelimit renames renormalize stat summary suppressdest tool verbosity verifysignatures *.name *.recursive",
    "mergetool": "guidefault hideresolved keepbackup keeptemporaries prompt writetotemp"
    " meld.hasoutput meld.useautomerge *.hideresolved *.trustexitcode",
    "notes": "displayref mergestrategy rewrite.* rewritemode rewriteref *.mergestrategy",
    "pack": "allowpackreuse compression deltacachelimit deltacachesize depth indexversion island islandcore"
    " packsizelimit preferbitmaptips readreverseindex threads usebitmapboundarytraversal usebitmaps usepathwalk"
    " usesparse window windowmemory writebitmaphashcache writebitmaplookuptable writebitmaps writereverseindex",
    "pager": "*",
    "patchid": "stable verbatim",
    "pretty": "*",
    "promisor": "advertise checkfields quiet sendfields storefields",
    "protocol": "version",
    "pull": "autostash ff rebase",
    "push": "autosetupremote default followtags gpgsign negotiate recursesubmodules usebitmaps useforceifincludes",
    "rebase": "abbreviatecommands autosquash autostash backend forkpoint maxlabellength missingcommitscheck"
    " rebasemerges reschedulefailedexec stat updaterefs usebuiltin",
    "receive": "advertiseatomic advertisepushoptions autogc certnonceseed certnonceslop denycurrentbranch"
    " denydeletecurrent denydeletes denynonfastforwards fsckobjects hiderefs keepalive maxinputsize procreceiverefs"
    " shallowupdate unpacklimit updateserverinfo",
    "reftable": "blocksize geometricfactor indexobjects locktimeout restartinterval",
    # `gh` and `glab` write *-resolved; Android's repo projectname and review; VS Code github-pr-remote
    "remote": "*.fetch *.followremotehead *.partialclonefilter *.promisor *.prune *.prunetags *.serveroption"
    " *.skipdefaultupdate *.skipfetchall *.tagopt *.token *.gh-resolved *.glab-resolved *.projectname *.review"
    " *.github-pr-remote *.annex-availability *.annex-bare *.annex-config-uuid *.annex-cost *.annex-ignore"
    " *.annex-ignore-auto *.annex-pull *.annex-push *.annex-readonly *.annex-sync *.annex-trustlevel *.annex-uuid",
    "remotes": "*",
    "repack": "cruftdepth cruftthreads cruftwindow cruftwindowmemory midxmustcontaincruft midxnewlayerthreshold"
    " midxsplitfactor packkeptobjects updateserverinfo usedeltabaseoffset usedeltaislands writebitmaps",
    "replay": "refaction",
    "rerere": "autoupdate enabled",
    "reset": "quiet",
    "revert": "reference",
    "safe": "",
    "scalar": "",
    "sendemail": "*.blob *.file "
    + _both(
        "aliasesfile aliasfiletype annotate assume8bitencoding bcc cc cccover chainreplyto composeencoding confirm"
        " envelopesender forbidsendmailvariables from imapsentfolder mailmap multiedit outlookidfix signedoffbycc"
        " signedoffcc smtpauth smtpbatchsize smtpdomain smtppass smtprelogindelay smtpserverport smtpuser suppresscc"
        " suppressfrom thread to tocover transferencoding useimaponly validate xmailer"
    ),
    "sequence": "",
    "showbranch": "default",
    "sideband": "",
    "sparse": "expectfilesoutsideofpatterns",
    "splitindex": "maxpercentchange sharedindexexpire",
    "ssh": "variant",
    "stash": "index showincludeuntracked showpatch showstat usebuiltin",
    "status": "aheadbehind branch color comparebranches displaycommentprefix relativepaths renamelimit renames short"
    " showstash showuntrackedfiles submodulesummary",
    "submodule": "active alternateerrorstrategy alternatelocation fetchjobs propagatebranches stickyrecursiveclone"
    " *.active *.branch *.fetchrecursesubmodules *.path *.shallow",
    "svn": "addauthorfrom brokensymlinkworkaround findcopiesharder followparent ignorepaths ignorerefs includepaths"
    " localtime noauthcache nometadata pathnameencoding preserveemptydirs pushmergeinfo rmdir uselogauthor usesvmprops"
    " usesvnsyncprops username",
    "svn-remote": OTHERS,
    "tag": "forcesignannotated gpgsign sort",
    "tar": "umask *.remote",
    "trace2": "configparams destinationdebug envvars eventbrief eventnesting maxfiles normalbrief perfbrief",
    "trailer": "ifexists ifmissing separators where *.ifexists *.ifmissing *.key *.where",
    "transfer": "advertiseobjectinfo advertisesid bundleuri credentialsinurl fsckobjects hiderefs unpacklimit",
    "uploadarchive": "allowunreachable",
    "uploadpack": "advertisebundleuris allowanysha1inwant allowfilter allowreachablesha1inwant allowrefinwant"
    " allowsidebandall allowtipsha1inwant hiderefs keepalive",
    "uploadpackfilter": "allow *.allow tree.maxdepth",
    "url": "",
    "user": f"email name signingkey useconfigonly * {OTHERS}",
    "versionsort": "prereleasesuffix suffix",
    "web": "browser",
    "worktree": "guessremote userelativepaths",
}
"""By section of git. ``*`` is any name without a subsection, or any subsection; an empty one has no ordinary key.

The values of some of them matter all the same: those are in ``gitkeys.KEYS`` too, which is asked first.
"""

OF_OTHERS: Mapping[str, str] = {
    "annex": "addunlocked autocommit backend backends bloomaccuracy crippledfilesystem diskreserve genmetadata"
    " largefiles numcopies pidlock sshcaching supportunlocked synccontent thin uuid version",
    "bash": "*",  # git's own prompt
    "cola": "spellcheck tabwidth textwidth",
    "delta": "dark diff-highlight diff-so-fancy features hyperlinks light line-numbers navigate side-by-side"
    " syntax-theme",
    "diff-so-fancy": "*",
    "git-town": "main-branch perennial-branches",
    "git-town-branch": "*.branchtype *.parent",
    "gitflow": "branch.* branch.*.base origin prefix.* version",
    "lfs": "allowincompletepush basictransfersonly batch concurrenttransfers fetchexclude fetchinclude"
    " fetchrecentalways fetchrecentcommitsdays fetchrecentrefsdays fetchrecentremoterefs lockignoredfiles locksverify"
    " repositoryformatversion setlockablereadonly skipdownloaderrors *.access *.locksverify",
    "stgit": "autosign keepoptimized shortnr",
    "tig": "ignore-case line-graphics main-options mouse tab-size wrap-lines color.*",
}
"""By section of other programs: keys that are ordinary. A key of a section that is not listed is a finding.

It was the other way round, and an attacker found a dozen programs that run what a key of theirs names.
"""
