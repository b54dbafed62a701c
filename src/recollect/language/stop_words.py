"""The function words of each language: left out of the index, and the evidence by which a language is recognised."""

from recollect.language.letters import fold

_LISTS = {
    # Snowball's standard list without its apostrophes. Recall was measured with it: change it only with a measurement.
    "english": """
        i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
        it its itself they them their theirs themselves what which who whom this that these those am is are was were be
        been being have has had having do does did doing would should could ought im youre hes shes theyre ive youve
        weve theyve id youd hed theyd youll theyll isnt arent wasnt werent hasnt havent hadnt doesnt dont didnt wont
        wouldnt shant shouldnt cant cannot couldnt mustnt lets thats whos whats heres theres whens wheres whys hows a an
        the and but if or because as until while of at by for with about against between into through during before
        after above below to from up down in out on off over under again further then once here there when where why
        how all any both each few more most other some such no nor not only own same so than too very can will just""",
    "german": """
        ich du er sie es wir ihr mich dich ihn uns euch mir dir ihm ihnen mein meine meinem meinen meiner meines dein
        deine deinem deinen deiner deines sein seine seinem seinen seiner seines ihre ihrem ihren ihrer ihres unser
        unsere unserem unseren unserer euer eure eurem euren eurer sich selbst der die das dem den des ein eine einem
        einen einer eines kein keine keinem keinen keiner dieser diese dieses diesem diesen jener jene jenes jeder jede
        jedes jedem jeden welcher welche welches welchem welchen alle allem allen aller alles und oder aber denn sondern
        dass daß weil wenn als ob obwohl damit bevor nachdem während in im an am auf aus bei beim mit nach von vom vor
        zu zum zur über unter um für gegen ohne durch bis seit zwischen hinter neben wegen bin bist ist sind seid war
        warst waren wart gewesen habe hast hat haben habt hatte hattest hatten gehabt werde wirst wird werden werdet
        wurde wurden geworden worden kann kannst können könnt konnte konnten könnte muss musst müssen musste mussten
        soll sollst sollen sollte sollten will willst wollen wollte wollten darf dürfen durfte mag möchte möchten würde
        würden nicht nichts nie auch nur noch schon sehr so wie was wer wen wem wessen wo woher wohin wann warum wieso
        da dort hier hin her dann doch ja nein mal etwas einige viel viele mehr man jetzt immer wieder also eben""",
    "french": """
        je tu il elle on nous vous ils elles me te se moi toi lui leur leurs eux y en mon ma mes ton ta tes son sa ses
        notre nos votre vos le la les un une des du de au aux ce cet cette ces ceci cela ça celui celle ceux celles qui
        que quoi dont où quel quelle quels quelles lequel laquelle et ou mais donc or ni car si comme quand lorsque
        puisque parce pourquoi comment à dans par pour sur sous avec sans chez vers entre depuis pendant avant après
        contre jusque suis es est sommes êtes sont étais était étions étiez étaient été être serai sera serons seront
        serait soit ai as a avons avez ont avais avait avions aviez avaient eu avoir aurai aura aurons auront aurait
        fais fait faites font faire faisait peux peut pouvons pouvez peuvent pouvoir veux veut voulons voulez veulent
        vais va allons allez vont ne pas plus jamais rien non oui aussi très trop bien encore déjà tout toute tous
        toutes autre autres même mêmes ici là alors ainsi peu quelque quelques chaque plusieurs""",
    "spanish": """
        yo tú tu él ella ello nosotros nosotras vosotros vosotras ellos ellas usted ustedes me te se nos os lo la los
        las le les mí ti sí mi mis tus su sus nuestro nuestra nuestros nuestras vuestro vuestra mío mía el un una unos
        unas de del al a ante bajo con contra desde durante en entre hacia hasta para por según sin sobre tras y e o u
        ni que pero sino porque aunque si como cuando donde mientras qué quién quiénes cuál cuáles cómo cuándo dónde
        cuánto cuánta cuántos cuántas quien cual este esta esto estos estas ese esa eso esos esas aquel aquella aquello
        soy eres es somos sois son era eras éramos eran fui fue fuimos fueron ser sido siendo será serán sería sea
        estoy estás está estamos están estaba estaban estuvo estar estado he has ha hemos habéis han había habían haber
        hay hubo tengo tienes tiene tenemos tienen tenía tener puedo puede pueden hace hacer no sí nada nunca también
        tampoco ya muy más menos mucho mucha muchos muchas poco todo toda todos todas otro otra otros otras algo alguno
        alguna algunos algunas cada mismo misma aquí allí ahí así entonces tan tanto""",
    "italian": """
        io tu lui lei noi voi loro egli ella esso essa mi ti si ci vi lo la li le gli ne me te sé mio mia miei mie tuo
        tua tuoi tue suo sua suoi sue nostro nostra nostri nostre vostro vostra vostri vostre il i un uno una di a da
        in con su per tra fra del dello della dei degli delle al allo alla ai agli alle dal dallo dalla dai dagli dalle
        nel nello nella nei negli nelle sul sullo sulla sui sugli sulle col e ed o od ma però anche se che chi cui quale
        quali come quando dove perché mentre poiché cosa quanto quanta quanti quante questo questa questi queste quello
        quella quelli quelle quel quei sono sei è siamo siete era eri eravamo erano fui fu furono essere stato stata
        stati state sarà saranno sarebbe sia ho hai ha abbiamo avete hanno avevo aveva avevano avere avuto faccio fa
        fare posso può possono vuole non no sì più meno molto molta molti molte poco tutto tutta tutti tutte altro altra
        altri altre ogni qualche alcuni alcune stesso stessa già ancora sempre mai qui qua lì là così poi quindi""",
    "portuguese": """
        eu tu ele ela nós vós eles elas você vocês me te se lhe lhes nos vos o a os as mim ti si meu minha meus minhas
        teu tua teus tuas seu sua seus suas nosso nossa nossos nossas um uma uns umas de do da dos das em no na nas num
        numa ao à aos às por pelo pela pelos pelas para pra com sem sob sobre entre até desde contra e ou mas nem porém
        que porque pois se como quando onde enquanto embora quem qual quais quanto quanta quantos quantas este esta isto
        estes estas esse essa isso esses essas aquele aquela aquilo aqueles aquelas dele dela deles delas sou és é somos
        são era eras éramos eram fui foi fomos foram ser sido sendo será serão seria seja estou está estamos estão
        estava estavam esteve estar tenho tens tem temos têm tinha tinham ter tido teve há havia houve haver hei pode
        podem posso faz fazer não sim nunca nada também já muito muita muitos muitas mais menos pouco todo toda todos
        todas tudo outro outra outros outras algo algum alguma alguns algumas cada mesmo mesma aqui ali lá assim então
        só ainda depois antes""",
    "dutch": """
        ik jij je u hij zij ze het wij we jullie mij me jou hem haar ons hen hun mijn jouw uw zijn onze zich zelf de een
        der des dit dat deze die en of maar want dus als dan toen omdat terwijl hoewel indien dat in op aan van voor met
        bij naar uit om te tot door over onder tegen tussen zonder sinds tijdens achter naast binnen ben bent is was
        waren geweest heb hebt heeft hebben had hadden gehad word wordt worden werd werden geworden zal zult zullen zou
        zouden kan kunt kunnen kon konden moet moeten moest mag mogen wil willen wilde niet geen niets nooit ook nog al
        wel heel erg zo hoe wat wie waar wanneer waarom welke welk waarmee er hier daar nu weer meer veel alle alles
        iets iemand niemand andere elk elke ja nee toch maar eens""",
    "swedish": """
        jag du han hon den det vi ni de mig dig honom henne oss er dem sig min mitt mina din ditt dina sin sitt sina
        hans hennes vår vårt våra deras en ett denna detta dessa och eller men för att om när som då så därför eftersom
        medan innan i på av till från med utan under över mellan efter hos vid mot genom ur åt är var varit vara blir
        blev bli blivit har hade haft ha ska skall skulle kan kunde kunna vill ville måste får fick inte ej aldrig inga
        ingen inget också bara mycket mer mest många alla allt någon något några varje annan andra samma själv vad vem
        vilken vilket vilka var vart hur varför här där nu sedan redan ju väl""",
    "danish": """
        jeg du han hun den det vi i de mig dig ham hende os jer dem sig min mit mine din dit dine sin sit sine hans
        hendes vores jeres deres en et denne dette disse og eller men for at om når som da så fordi mens før på af til
        fra med uden under over mellem efter hos ved mod gennem er var været være bliver blev blive blevet har havde
        haft have skal skulle kan kunne vil ville må måtte får fik ikke aldrig ingen intet også kun bare meget mere
        mest mange alle alt nogen noget nogle hver anden andre samme selv hvad hvem hvilken hvilket hvilke hvor hvornår
        hvordan hvorfor her der nu siden allerede jo vel lidt""",
    "norwegian": """
        jeg du han hun den det vi dere de meg deg ham henne oss dem seg min mitt mi mine din ditt dine sin sitt sine
        hans hennes vår vårt våre deres en et ei denne dette disse og eller men for at om når som da så fordi mens før i
        på av til fra med uten under over mellom etter hos ved mot gjennom er var vært være blir ble bli blitt har hadde
        hatt ha skal skulle kan kunne vil ville må måtte får fikk ikke aldri ingen intet også bare kun mye mer mest
        mange alle alt noen noe hver annen andre samme selv hva hvem hvilken hvilket hvilke hvor når hvordan hvorfor
        her der nå siden allerede jo vel litt""",
    "finnish": """
        minä sinä hän me te he minun sinun hänen meidän teidän heidän minut sinut hänet meidät minua sinua häntä meitä
        minulla sinulla hänellä meillä heillä minulle sinulle hänelle meille heille se ne sen sitä siinä siitä siihen
        sillä niiden niitä tämä tämän tätä tässä tästä tähän nämä näiden tuo tuon tuota nuo joka jonka jota jossa josta
        jotka joita mikä mitä missä mistä mihin milloin miksi miten kuka kenen ketä kuinka ja tai mutta vaan että jos
        kun kuin koska vaikka sekä eli olen olet on olemme olette ovat olin olit oli olimme olivat ollut olla olisi en
        et ei emme ette eivät älä ole voi voin voit voivat piti pitää täytyy myös vain vielä jo nyt sitten aina koskaan
        niin näin hyvin paljon enemmän kaikki kaikkea jokin jotain jotakin joku muu muut toinen sama itse kanssa ilman
        ennen jälkeen aikana kohti tässä täällä siellä""",
    "turkish": """
        ben sen o biz siz onlar beni seni onu bizi sizi onları bana sana ona bize size onlara benim senin onun bizim
        sizin onların bende bu şu bunu şunu bunun bunlar şunlar ve veya ya ama fakat ancak çünkü eğer ki ile için gibi
        kadar göre sonra önce beri karşı doğru de da mi mı mu mü ne neden niçin nasıl nerede nereye kim kimin hangi kaç
        zaman bir her hiç hep bazı birkaç çok daha en az değil var yok evet hayır olan olarak oldu olduğu olur ise idi
        şey şimdi artık bile yine hem""",
    "hungarian": """
        én te ő mi ti ők engem téged őt minket titeket őket nekem neked neki nekünk nektek nekik az a egy ez azt ezt
        azok ezek annak ennek abban ebben ahhoz és vagy de hanem ha hogy mert mivel amikor mint aki ami amely akik amit
        akit is se sem nem ne igen csak már még majd most mindig soha nagyon így úgy itt ott ide oda ki kit mit mi hol
        hova mikor miért hogyan melyik mennyi hány vagyok vagyunk vannak van volt voltam voltak lesz lenne legyen lehet
        lett kell tud szerint után előtt alatt között nélkül által minden mindenki valami valaki semmi senki más több
        meg el fel be le át""",
    "romanian": """
        eu tu el ea noi voi ei ele mă te se ne vă îl îi le mi ți și lui lor meu mea mei mele tău ta tăi tale său sa săi
        sale nostru noastră noștri vostru un o unei unui niște al ai ale cel cea cei cele acest această acesta aceasta
        acești aceste acel acea sau dar iar ori că să dacă pentru fiindcă deoarece când unde cum ce cine care cât câți
        câte de la în din pe cu fără spre către până după între sub peste prin sunt ești este e suntem sunteți era eram
        erau fost fi fie va vor voi am are avem aveți au avea avut nu da nici mai foarte tot toată toți toate alt altă
        alți alte fiecare nimic ceva cineva aici acolo acum atunci încă deja doar""",
    "polish": """
        ja ty on ona ono my wy oni one mnie ciebie jego jej nas was ich mi ci mu im mną tobą nim nią nami wami nimi go
        ją je mój moja moje moich mojej twój twoja twoje swój swoja swoje nasz nasza nasze wasz ten ta to ci te tego tej
        tych temu tym tę tamten tamta który która które którego której których którym i a oraz lub albo ale lecz więc że
        żeby aby jeśli jeżeli gdy kiedy gdzie jak dlaczego co kto kogo czego czy w we z ze na do od po za przed przez
        pod nad o u dla bez między przy jestem jesteś jest jesteśmy są był była było byli były być będę będzie będą mam
        masz ma mamy mają miał miała mieć może mogę można nie tak się też także już jeszcze tylko bardzo tam tu tutaj
        teraz wtedy zawsze nigdy wszystko wszyscy każdy inny inne nic coś ktoś więcej""",
    "indonesian": """
        saya aku kamu anda dia ia kami kita mereka kalian yang dan atau tetapi tapi karena jika kalau bahwa agar supaya
        ketika saat sebelum sesudah setelah sambil di ke dari pada untuk dengan oleh dalam tentang antara tanpa sampai
        sejak ini itu tersebut sini situ sana adalah ialah akan sudah telah sedang masih belum pernah bisa dapat harus
        boleh ingin ada tidak bukan jangan juga hanya saja lagi lebih paling sangat sekali apa siapa kapan mana dimana
        mengapa kenapa bagaimana berapa semua setiap beberapa para sebuah seorang nya pun lah kah""",
    "russian": """
        я ты он она оно мы вы они меня тебя его её нас вас их мне тебе ему ей нам вам им мной тобой ним ней нами вами
        ними нём себя себе собой мой моя моё мои моего моей моих твой твоя твоё твои свой своя своё свои своего своей
        своих наш наша наше наши ваш ваша ваше ваши этот эта это эти этого этой этих этом тот та то те того той тех том
        который которая которое которые которого которой которых что чего чем чём кто кого кому кем какой какая какое
        какие где куда откуда когда почему зачем как сколько и а но или да же бы ли ни не нет если чтобы потому хотя
        пока в во на с со к ко у о об от до из за по под над при про для без через между перед после около есть был была
        было были быть буду будет будут будем может можно надо нужно уже ещё очень тоже также только лишь вот тут там
        здесь сейчас тогда потом всегда никогда весь вся всё все всего всех всем каждый другой другие самый сам так
        такой такая такие более больше""",
    "greek": """
        εγώ εσύ αυτός αυτή αυτό εμείς εσείς αυτοί αυτές αυτά με σε τον την το τους τις τα μου σου του της μας σας ο η οι
        των στο στη στην στον στους στις στα ένας μια μία ένα και κι ή αλλά όμως γιατί επειδή αν όταν που πού πως πώς
        ότι τι ποιος ποια ποιο ποιοι πότε πόσο από για με χωρίς πριν μετά κατά μέχρι προς παρά είμαι είσαι είναι είμαστε
        είστε ήμουν ήταν έχω έχεις έχει έχουμε έχετε έχουν είχα είχε είχαν θα να δεν μην ας όχι ναι και πολύ πιο μόνο
        εδώ εκεί τώρα τότε πάντα ποτέ όλα όλοι όλες κάθε κάτι κάποιος τίποτα άλλο""",
    "arabic": """
        أنا أنت هو هي نحن أنتم هم هن هذا هذه ذلك تلك هؤلاء الذي التي الذين من إلى عن على في مع بعد قبل بين حتى منذ عند و
        أو ثم لكن لأن إذا لو أن إن كي كما ما ماذا من متى أين كيف لماذا كم هل لا لم لن ليس ليست كان كانت كانوا يكون تكون
        قد سوف كل بعض غير أي جدا فقط أيضا هنا هناك الآن له لها لهم لي لك لنا به بها فيه فيها منه منها عليه عليها""",
    "hindi": """
        मैं तू तुम आप वह यह वे ये हम मुझे तुझे तुम्हें आपको उसे इसे हमें उन्हें इन्हें मेरा मेरी मेरे तेरा तुम्हारा आपका आपकी उसका उसकी उसके
        इसका इसकी इसके हमारा हमारी हमारे उनका उनकी उनके का की के को से में पर ने तक और या लेकिन मगर क्योंकि अगर तो कि जो जब
        जहाँ जैसे क्या कौन कब कहाँ क्यों कैसे कितना कितने किस है हैं हूँ हो था थी थे होगा होना हुआ हुई हुए रहा रही रहे गया गई गए
        कर करना किया नहीं न मत भी ही बहुत कुछ सब यहाँ वहाँ अब तब फिर लिए साथ बाद पहले एक""",
}


STOP_WORDS = {language: frozenset(fold(words).split()) for language, words in _LISTS.items()}
